#include "engine/kernel/diff/reverse.h"

#include <set>
#include <utility>

#include "engine/kernel/diff/indices.h"
#include "engine/kernel/diff/places.h"
#include "engine/kernel/names.h"

namespace eagle::kernel::diff {

// ---- sums

ValueId Reverse::joined(ValueId a, ValueId b) { return a == none || b == none ? none : w_.either(a, b); }
ValueId Reverse::condition(ValueId taken) { return taken == none ? w_.boolean(true) : taken; }
ValueId Reverse::guarded(ValueId value, ValueId taken) {
  return taken == none ? value : w_.select(taken, value, w_.zero(w_.type(value)));
}

void Reverse::contribute(ValueId value, ValueId bar, ValueId taken) {
  if (!activity_.varied(value)) return;
  const auto [place, first] = sums_.emplace(value, Bar{bar, taken});
  if (first) return;
  Bar& sum = place->second;
  sum = {w_.add(sum.value, bar), joined(sum.taken, taken)};
}

std::optional<Reverse::Bar> Reverse::take(ValueId value) {
  const auto found = sums_.find(value);
  if (found == sums_.end()) return std::nullopt;
  const Bar bar = found->second;
  sums_.erase(found);
  return bar;
}

// ---- ops

Status Reverse::ops(const Region& region) {
  for (auto op = region.ops.rbegin(); op != region.ops.rend(); ++op) {
    w_.at(op->location);
    EAGLE_RETURN_IF_ERROR(this->op(*op));
  }
  return {};
}

Status Reverse::op(const Op& op) {
  if (op.code == Opcode::while_) return loop(op);
  if (op.code == Opcode::primitive) return primitive(op);
  if (!op.regions.empty()) return sides(op);
  if (op.code == Opcode::accum_add) {
    accum_add(op);
  } else {
    plain(op);
  }
  return {};
}

void Reverse::plain(const Op& op) {
  if (op.code == Opcode::gather) return gather(op);
  const std::optional<Bar> bar = take(op.results[0]);
  if (!bar) return;
  switch (op.code) {
    case Opcode::select:
      return select(op, *bar);
    case Opcode::convert:
      return contribute(op.operands[0], w_.op(Opcode::convert, {bar->value}, primal_.type(op.operands[0])),
                        bar->taken);
    case Opcode::compose:
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (activity_.varied(op.operands[i]))
          contribute(op.operands[i], w_.extract(bar->value, i), bar->taken);
      }
      return;
    case Opcode::extract:
      return extract(op, *bar);
    default:
      if (has_factor(op.code)) elementwise(op, *bar);
  }
}

void Reverse::elementwise(const Op& op, const Bar& bar) {
  const std::vector<ValueId> operands = primal_.now(op.operands);
  const Use use{op.code, operands, primal_.now(op.results[0]),
                op.code == Opcode::sqrt && activity_.is_square_sum(op.operands[0])};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!activity_.varied(op.operands[i])) continue;
    const Term found = term(w_, use, i, bar.value);
    if (found.value == none) continue;
    const ValueId value = keeps_zero(op.code) ? found.value : guarded(found.value, bar.taken);
    ValueId taken = bar.taken;
    if (found.chosen != none) taken = taken == none ? found.chosen : w_.both(taken, found.chosen);
    contribute(op.operands[i], value, taken);
  }
}

// A component of what came from a plane: the others are those of other uses.
void Reverse::extract(const Op& op, const Bar& bar) {
  if (!activity_.varied(op.operands[0])) return;
  std::vector<ValueId>& components = components_[op.operands[0]];
  components.resize(static_cast<std::size_t>(primal_.type(op.operands[0]).components()), none);
  ValueId& own = components[op.component];
  own = own == none ? bar.value : w_.add(own, bar.value);
}

std::optional<ValueId> Reverse::take_whole(ValueId value) {
  const auto found = components_.find(value);
  if (found == components_.end()) {
    const std::optional<Bar> bar = take(value);
    return bar ? std::optional(bar->value) : std::nullopt;
  }
  const Type& type = primal_.type(value);
  std::vector<ValueId> components = std::move(found->second);
  components_.erase(found);
  for (ValueId& component : components) {
    if (component == none) component = w_.zero(scalar_of(type));
  }
  return w_.op(Opcode::compose, std::move(components), type);
}

void Reverse::select(const Op& op, const Bar& bar) {
  const ValueId holds = primal_.now(op.operands[0]);
  const ValueId zero = w_.zero(w_.type(bar.value));
  for (std::size_t i = 1; i < 3; ++i) {
    if (!activity_.varied(op.operands[i])) continue;
    const ValueId here = i == 1 ? holds : w_.inverse(holds);
    const ValueId value = i == 1 ? w_.select(holds, bar.value, zero) : w_.select(holds, zero, bar.value);
    contribute(op.operands[i], value, bar.taken == none ? here : w_.both(bar.taken, here));
  }
}

// The element that was read gets it: a look-up outside of a table reads the nearest one.
void Reverse::gather(const Op& op) {
  const std::optional<ValueId> bar = take_whole(op.results[0]);
  if (!bar) return;
  const std::size_t place = bar_tables_[op.argument];
  w_.accum_add(place, *bar, clamped(w_, place, primal_.now(op.operands)));
}

void Reverse::accum_add(const Op& op) {
  if (!activity_.varied(op.operands[0])) return;
  const std::size_t place = bar_tables_[op.argument];
  std::vector<ValueId> indices = primal_.now(op.operands);
  indices.erase(indices.begin());
  const ValueId read = w_.gather(place, clamped(w_, place, indices));
  contribute(op.operands[0], w_.select(inside(w_, place, indices), read, w_.zero(w_.type(read))));
}

// ---- branches

Status Reverse::sides(const Op& op) {
  std::vector<std::optional<Bar>> bars;
  bool any = activity_.accumulates(op);
  for (const ValueId result : op.results) {
    bars.push_back(take(result));
    any = any || bars.back();
  }
  if (!any) return {};

  // Each side anew, and what it contributes to values from outside.
  struct Side {
    Region region;
    std::map<ValueId, Bar> found;
  };
  std::vector<Side> made;
  std::set<ValueId> outer;
  for (const Region& side : op.regions) {
    Sums before = std::exchange(sums_, {});
    w_.begin();
    primal_.ops(side);
    for (std::size_t i = 0; i < bars.size(); ++i) {
      if (bars[i]) contribute(side.yields[i], bars[i]->value, bars[i]->taken);
    }
    EAGLE_RETURN_IF_ERROR(ops(side));
    Side& here = made.emplace_back();
    while (!sums_.empty()) {
      const ValueId value = sums_.begin()->first;
      here.found[value] = *take(value);
      outer.insert(value);
    }
    here.region = w_.end();
    sums_ = std::move(before);
  }

  std::vector<Type> types;
  for (const ValueId value : outer) {
    for (Side& side : made) {
      const auto found = side.found.find(value);
      const bool here = found != side.found.end();
      side.region.yields.push_back(here ? found->second.value : w_.zero(primal_.type(value)));
      side.region.yields.push_back(here ? condition(found->second.taken) : w_.boolean(false));
    }
    types.insert(types.end(), {primal_.type(value), boolean_type});
  }
  std::vector<Region> regions;
  for (Side& side : made) regions.push_back(std::move(side.region));
  w_.at(op.location);
  const std::vector<ValueId> results =
      w_.structure(op.code, primal_.now(op.operands), std::move(regions), types);
  std::size_t next = 0;
  for (const ValueId value : outer) {
    contribute(value, results[next], results[next + 1]);
    next += 2;
  }
  return {};
}

// The author's rule, in place.
Status Reverse::primitive(const Op& op) {
  bool any = false;
  std::optional<ValueId> taken;
  std::vector<ValueId> bars;
  for (const ValueId result : op.results) {
    if (!is_real(primal_.type(result).scalar)) continue;
    const std::optional<Bar> bar = take(result);
    bars.push_back(bar ? bar->value : w_.zero(primal_.type(result)));
    if (bar) taken = any ? joined(*taken, bar->taken) : bar->taken;
    any = any || bar;
  }
  if (!any) return {};
  const Region& rule = op.regions[2];
  if (is_absent(rule)) return missing_rule(kernel_, op, "vjp");
  std::vector<ValueId> values = primal_.now(op.operands);
  values.insert(values.end(), bars.begin(), bars.end());
  primal_.map(rule.arguments, values);
  primal_.ops(rule);
  std::size_t next = 0;
  for (const ValueId operand : op.operands) {
    if (!is_real(primal_.type(operand).scalar)) continue;
    const ValueId yield = primal_.now(rule.yields[next++]);
    if (activity_.varied(operand)) contribute(operand, guarded(yield, *taken), *taken);
  }
  return {};
}

Status Reverse::refusal(const Op& op, Reason reason, const std::string& text) const {
  return {reason, "vjp: kernel " + quote_name(kernel_.name) + ": " + text + place_of(kernel_, op)};
}

}  // namespace eagle::kernel::diff
