#include "engine/kernel/diff/activity.h"

#include <algorithm>

#include "engine/kernel/copier.h"
#include "engine/kernel/diff/derivative.h"
#include "engine/kernel/diff/rules.h"

namespace eagle::kernel::diff {

Activity::Activity(const Kernel& kernel, std::vector<bool> arguments, const std::vector<bool>& unasked)
    : kernel_(kernel),
      arguments_(std::move(arguments)),
      varied_(kernel.value_types.size()),
      squares_(kernel.value_types.size()),
      home_(kernel.value_types.size()) {
  number(kernel.body);
  const std::vector<ValueId> entries = entries_of(kernel);
  for (std::size_t a = 0; a < entries.size(); ++a) {
    if (entries[a] != unmapped) vary(entries[a], arguments_[a]);
  }
  while (spread(kernel.body)) {
  }
  find_squares(kernel.body);
  bool weaker = true;
  while (weaker) {
    std::vector<bool> sure(kernel.value_types.size());
    std::size_t yield = 0;
    for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
      const Argument& argument = kernel.arguments[a];
      if (!is_committed(argument.role)) continue;
      const ValueId committed = kernel.body.yields[yield++];
      // Of an extreme one sample alone has an adjoint.
      if (!is_extreme(argument) && (unasked.empty() || !unasked[a])) sure[committed] = varied_[committed];
    }
    weaker = weaken(kernel.body, sure);
  }
}

void Activity::number(const Region& region) {
  const auto mine = static_cast<std::uint32_t>(numbers_.size());
  numbers_[&region] = mine;
  for (const ValueId argument : region.arguments) home_[argument] = mine;
  for (const Op& op : region.ops) {
    for (const Region& nested : op.regions) number(nested);
    for (const ValueId result : op.results) home_[result] = mine;
    if (op.code == Opcode::while_) certain_[&op].assign(op.operands.size(), true);
  }
}

// ---- what varies

bool Activity::vary(ValueId value, bool holds) {
  if (!holds || varied_[value] || !is_real(kernel_.value_types[value].scalar)) return false;
  varied_[value] = true;
  return true;
}

bool Activity::spread(const Region& region) {
  bool changed = false;
  for (const Op& op : region.ops) changed = spread_op(op) || changed;
  return changed;
}

bool Activity::spread_op(const Op& op) {
  bool changed = false;
  if (op.code == Opcode::while_) {
    const auto& condition = op.regions[0];
    const auto& body = op.regions[1];
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const bool holds = varied_[op.operands[i]] || varied_[body.yields[i]];
      changed = vary(body.arguments[i], holds) || changed;
      changed = vary(condition.arguments[i], holds) || changed;
      changed = vary(op.results[i], holds) || changed;
    }
    for (const Region& nested : op.regions) changed = spread(nested) || changed;
  } else if (op.code == Opcode::primitive) {
    const bool holds = std::any_of(op.operands.begin(), op.operands.end(),
                                   [this](ValueId operand) { return varied_[operand]; });
    for (const ValueId result : op.results) changed = vary(result, holds) || changed;
  } else if (!op.regions.empty()) {
    for (const Region& nested : op.regions) {
      changed = spread(nested) || changed;
      for (std::size_t i = 0; i < op.results.size(); ++i)
        changed = vary(op.results[i], varied_[nested.yields[i]]) || changed;
    }
  } else if (op.code == Opcode::gather) {
    changed = vary(op.results[0], arguments_[op.argument]);
  } else if (!op.results.empty() && !is_flat(op.code)) {
    const bool holds = std::any_of(op.operands.begin(), op.operands.end(),
                                   [this](ValueId operand) { return varied_[operand]; });
    changed = vary(op.results[0], holds);
  }
  return changed;
}

void Activity::find_squares(const Region& region) {
  for (const Op& op : region.ops) {
    const auto square = [&](std::size_t i) { return squares_[op.operands[i]]; };
    if (op.code == Opcode::mul) {
      squares_[op.results[0]] = op.operands[0] == op.operands[1];
    } else if (op.code == Opcode::add) {
      squares_[op.results[0]] = square(0) && square(1);
    } else if (op.code == Opcode::fma) {
      squares_[op.results[0]] = op.operands[0] == op.operands[1] && square(2);
    }
    for (const Region& nested : op.regions) find_squares(nested);
  }
}

// ---- what gets an adjoint in any case

// `sure`: values of which that is known so far. What a region adds to a value from outside of it is not.
bool Activity::weaken(const Region& region, std::vector<bool>& sure) {
  const std::uint32_t mine = numbers_.at(&region);
  const auto add = [&](ValueId value, bool holds) {
    if (holds && varied_[value] && home_[value] == mine) sure[value] = true;
  };
  bool weaker = false;
  for (auto op = region.ops.rbegin(); op != region.ops.rend(); ++op) {
    const auto result = [&](std::size_t i) { return static_cast<bool>(sure[op->results[i]]); };
    if (op->code == Opcode::while_) {
      std::vector<bool>& certain = certain_.at(&*op);
      const Region& body = op->regions[1];
      const std::uint32_t inner = numbers_.at(&body);
      for (std::size_t i = 0; i < certain.size(); ++i) {
        if (certain[i] && !result(i)) certain[i] = false, weaker = true;
        if (certain[i] && varied_[body.yields[i]] && home_[body.yields[i]] == inner)
          sure[body.yields[i]] = true;
      }
      weaker = weaken(body, sure) || weaker;
      for (std::size_t i = 0; i < certain.size(); ++i) {
        if (certain[i] && !sure[body.arguments[i]]) certain[i] = false, weaker = true;
        add(op->operands[i], certain[i]);
      }
    } else if (op->code == Opcode::primitive) {
      bool any = false;
      for (std::size_t i = 0; i < op->results.size(); ++i) any = any || result(i);
      for (const ValueId operand : op->operands) add(operand, any);
    } else if (!op->regions.empty()) {
      for (const Region& side : op->regions) {
        const std::uint32_t inner = numbers_.at(&side);
        for (std::size_t i = 0; i < op->results.size(); ++i) {
          if (result(i) && varied_[side.yields[i]] && home_[side.yields[i]] == inner)
            sure[side.yields[i]] = true;
        }
        weaker = weaken(side, sure) || weaker;
      }
    } else if (op->code == Opcode::accum_add) {
      add(op->operands[0], true);
    } else if (!op->results.empty() && op->code != Opcode::select && !chooses(op->code)) {
      const std::size_t count = op->code == Opcode::copysign ? 1 : op->operands.size();
      for (std::size_t i = 0; i < count; ++i) add(op->operands[i], result(0));
    }
  }
  return weaker;
}

// ---- regions

void Activity::collect(const Region& region, std::set<ValueId>& inside, std::set<ValueId>& used) const {
  inside.insert(region.arguments.begin(), region.arguments.end());
  for (const Op& op : region.ops) {
    used.insert(op.operands.begin(), op.operands.end());
    for (const Region& nested : op.regions) collect(nested, inside, used);
    inside.insert(op.results.begin(), op.results.end());
  }
  used.insert(region.yields.begin(), region.yields.end());
}

std::set<ValueId> Activity::captured(const Region& region) const {
  std::set<ValueId> inside;
  std::set<ValueId> used;
  collect(region, inside, used);
  std::set<ValueId> found;
  for (const ValueId value : used) {
    if (varied_[value] && inside.count(value) == 0) found.insert(value);
  }
  return found;
}

bool Activity::accumulates(const Op& op) const {
  if (op.code == Opcode::accum_add) return varied_[op.operands[0]];
  return std::any_of(op.regions.begin(), op.regions.end(), [this](const Region& region) {
    return std::any_of(region.ops.begin(), region.ops.end(),
                       [this](const Op& inner) { return accumulates(inner); });
  });
}

}  // namespace eagle::kernel::diff
