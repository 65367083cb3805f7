#include "engine/kernel/diff/prune.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace eagle::kernel::diff {
namespace {

// Who defines a value: an op as its result `index`, or a loop as what it carries as value `index`.
struct Definition {
  const Op* op = nullptr;
  std::size_t index = 0;
};

class Pruner {
public:
  explicit Pruner(const Kernel& kernel)
      : kernel_(kernel),
        definitions_(kernel.value_types.size()),
        live_(kernel.value_types.size()),
        map_(kernel.value_types.size()) {}

  Kernel run() {
    define(kernel_.body, nullptr);
    for (const ValueId yield : kernel_.body.yields) want(yield);
    find_effects(kernel_.body);
    while (!wanted_.empty()) {
      const ValueId value = wanted_.back();
      wanted_.pop_back();
      follow(value);
    }
    Kernel out = kernel_;
    out.value_types.clear();
    out.body = {};
    copy_arguments(kernel_.body, out.body, out);
    copy_ops(kernel_.body, out.body, out);
    for (const ValueId yield : kernel_.body.yields) out.body.yields.push_back(map_[yield]);
    return out;
  }

private:
  void define(const Region& region, const Op* loop) {
    for (std::size_t i = 0; i < region.arguments.size(); ++i) definitions_[region.arguments[i]] = {loop, i};
    for (const Op& op : region.ops) {
      for (const Region& nested : op.regions) define(nested, op.code == Opcode::while_ ? &op : nullptr);
      for (std::size_t i = 0; i < op.results.size(); ++i) definitions_[op.results[i]] = {&op, i};
    }
  }

  // Everything around an addition is needed to come to it.
  bool find_effects(const Region& region) {
    bool found = false;
    for (const Op& op : region.ops) {
      bool here = op.code == Opcode::accum_add;
      if (here) {
        for (const ValueId operand : op.operands) want(operand);
      }
      for (const Region& nested : op.regions) here = find_effects(nested) || here;
      if (here) need(op);
      found = found || here;
    }
    return found;
  }

  void want(ValueId value) {
    if (live_[value]) return;
    live_[value] = true;
    wanted_.push_back(value);
  }

  void follow(ValueId value) {
    const Definition& definition = definitions_[value];
    if (definition.op == nullptr) return;  // an entry value
    const Op& op = *definition.op;
    need(op);
    if (op.code == Opcode::primitive) return;
    if (op.code == Opcode::while_) {
      const std::size_t i = definition.index;
      want(op.operands[i]);
      want(op.results[i]);
      want(op.regions[1].yields[i]);
      for (const Region& region : op.regions) want(region.arguments[i]);
    } else {
      for (const Region& region : op.regions) want(region.yields[definition.index]);
    }
  }

  // What the op needs whichever of its results is wanted.
  void need(const Op& op) {
    if (op.code == Opcode::while_) {
      want(op.regions[0].yields[0]);
      needed_.push_back(&op);
    } else if (op.code == Opcode::primitive) {  // whole, with its rules
      needed_.push_back(&op);
      for (const auto* values : {&op.operands, &op.results}) {
        for (const ValueId value : *values) want(value);
      }
      for (const Region& region : op.regions) {
        for (const auto* values : {&region.arguments, &region.yields}) {
          for (const ValueId value : *values) want(value);
        }
      }
    } else {
      for (const ValueId operand : op.operands) want(operand);
      needed_.push_back(&op);
    }
  }

  [[nodiscard]] bool is_needed(const Op& op) {
    if (!sorted_) {
      std::sort(needed_.begin(), needed_.end());
      sorted_ = true;
    }
    return std::binary_search(needed_.begin(), needed_.end(), &op);
  }

  ValueId define_in(Kernel& out, ValueId old) {
    out.value_types.push_back(kernel_.value_types[old]);
    map_[old] = static_cast<ValueId>(out.value_types.size() - 1);
    return map_[old];
  }

  void copy_arguments(const Region& from, Region& to, Kernel& out) {
    const bool body = &from == &kernel_.body;  // whose arguments are the kernel's
    for (const ValueId argument : from.arguments) {
      if (body || live_[argument]) to.arguments.push_back(define_in(out, argument));
    }
  }

  // Of values that are the same in number: those whose counterpart is live.
  std::vector<ValueId> kept(const std::vector<ValueId>& values, const std::vector<ValueId>& by) {
    std::vector<ValueId> result;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (live_[by[i]]) result.push_back(map_[values[i]]);
    }
    return result;
  }

  void copy_ops(const Region& from, Region& to, Kernel& out) {
    for (const Op& op : from.ops) {
      if (is_needed(op)) copy(op, to, out);
    }
  }

  void copy(const Op& op, Region& to, Kernel& out) {
    Op made = op;
    made.regions.clear();
    made.results.clear();
    const bool loop = op.code == Opcode::while_;
    if (loop) {
      made.operands = kept(op.operands, op.results);
    } else {
      for (ValueId& operand : made.operands) operand = map_[operand];
    }
    for (std::size_t r = 0; r < op.regions.size(); ++r) {
      const Region& nested = op.regions[r];
      Region region;
      copy_arguments(nested, region, out);
      copy_ops(nested, region, out);
      if ((loop && r == 0) || op.code == Opcode::primitive) {
        for (const ValueId yield : nested.yields) region.yields.push_back(map_[yield]);
      } else {
        region.yields = kept(nested.yields, op.results);
      }
      made.regions.push_back(std::move(region));
    }
    for (const ValueId result : op.results) {
      if (live_[result]) made.results.push_back(define_in(out, result));
    }
    to.ops.push_back(std::move(made));
  }

  const Kernel& kernel_;
  std::vector<Definition> definitions_;
  std::vector<bool> live_;
  std::vector<ValueId> map_;
  std::vector<ValueId> wanted_;
  std::vector<const Op*> needed_;
  bool sorted_ = false;
};

}  // namespace

Kernel pruned(const Kernel& kernel) { return Pruner(kernel).run(); }

}  // namespace eagle::kernel::diff
