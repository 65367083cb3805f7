#include "engine/kernel/transform.h"

#include <algorithm>
#include <utility>

#include "engine/kernel/copier.h"
#include "engine/kernel/names.h"

namespace eagle::kernel {
namespace {

// The kernel with one more argument, which has an entry value, before its ops are copied; the body
// afterwards.
struct Extended {
  Copier copier;
  ValueId entry = unmapped;
};
Extended extended(const Kernel& kernel, Argument added) {
  Extended made{Copier(kernel)};
  const std::vector<ValueId> entries = entries_of(kernel);
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a)
    made.copier.argument(kernel.arguments[a], entries[a]);
  made.entry = made.copier.fresh(added.type);
  made.copier.out.body.arguments.push_back(made.entry);
  made.copier.out.arguments.push_back(std::move(added));
  Region& body = made.copier.out.body;
  for (const Op& op : kernel.body.ops) made.copier.copy(op, body);
  for (const ValueId yield : kernel.body.yields) body.yields.push_back(made.copier.now(yield));
  return made;
}

template <typename Visit>
void for_each_group(const Region& region, const Visit& visit) {
  for (const Op& op : region.ops) {
    if (op.code == Opcode::switch_ && op.dispatch) visit(op);
    for (const Region& nested : op.regions) for_each_group(nested, visit);
  }
}
template <typename Visit>
void for_each_group(Region& region, const Visit& visit) {
  for (Op& op : region.ops) {
    if (op.code == Opcode::switch_ && op.dispatch) visit(op);
    for (Region& nested : op.regions) for_each_group(nested, visit);
  }
}

std::size_t weight_of(const Kernel& kernel, const Region& region) {
  std::size_t weight = 0;
  for (const Op& op : region.ops) {
    for (const ValueId result : op.results)
      weight += static_cast<std::size_t>(kernel.value_types[result].components());
    for (const Region& nested : op.regions) weight += weight_of(kernel, nested);
  }
  return weight;
}

bool has_group(const Region& region) {
  bool found = false;
  for_each_group(region, [&found](const Op& /*op*/) { found = true; });
  return found;
}

// What a set of values needs, and nothing else.
class Slice {
public:
  explicit Slice(const Kernel& kernel)
      : values_(kernel.value_types.size()), tables_(kernel.arguments.size()) {}

  void want(ValueId value) { values_[value] = true; }
  [[nodiscard]] bool wants(ValueId value) const { return values_[value]; }
  [[nodiscard]] bool wants_table(std::size_t argument) const { return tables_[argument]; }
  [[nodiscard]] bool wants(const Op& op) const {
    return std::any_of(op.results.begin(), op.results.end(), [this](ValueId r) { return values_[r]; });
  }
  // Goes through the ops from the last to the first; whoever uses a value comes after it.
  void close(const Region& region) {
    for (auto op = region.ops.rbegin(); op != region.ops.rend(); ++op) {
      if (wants(*op)) take(*op);
    }
  }
  // The op as a whole.
  void take(const Op& op) {
    for (const ValueId operand : op.operands) values_[operand] = true;
    if (op.code == Opcode::gather || op.code == Opcode::length) tables_[op.argument] = true;
    for (const Region& nested : op.regions) {
      for (const ValueId yield : nested.yields) values_[yield] = true;
      for (const Op& inner : nested.ops) {
        for (const ValueId result : inner.results) values_[result] = true;
        take(inner);
      }
    }
  }

private:
  std::vector<bool> values_;
  std::vector<bool> tables_;
};

// Lays the regions of ifs and switches that hold groups out flat: their ops have no effects and every one is
// defined for any operands, so they may run for samples that do not come to them.
class SelectorMaker {
public:
  explicit SelectorMaker(const Kernel& kernel) : kernel_(kernel), slice_(kernel), copier_(kernel) {}

  Selectors make() {
    find(kernel_.body);
    close(kernel_.body);
    declare_arguments();
    lay_out(kernel_.body, unmapped);
    for (const Found& found : found_) {
      Argument output;
      output.name = free_name(copier_.out, "selector" + std::to_string(found.group));
      output.role = Role::output;
      output.type = {Scalar::i64};
      copier_.out.arguments.push_back(std::move(output));
      copier_.out.body.yields.push_back(found.selector);
      made_.groups.push_back(found.group);
    }
    made_.kernel = std::move(copier_.out);
    return std::move(made_);
  }

private:
  struct Found {
    std::size_t group = 0;
    ValueId selector = unmapped;
  };

  static bool lays_flat(const Op& op) {
    return (op.code == Opcode::if_ || op.code == Opcode::switch_) &&
           std::any_of(op.regions.begin(), op.regions.end(), has_group);
  }

  // Selectors, and what decides whether a sample comes to them.
  void find(const Region& region) {
    for (const Op& op : region.ops) {
      if (op.code == Opcode::switch_ && op.dispatch) slice_.want(op.operands[0]);
      if (!lays_flat(op)) continue;
      slice_.want(op.operands[0]);
      for (const Region& nested : op.regions) find(nested);
    }
  }

  void close(const Region& region) {
    for (auto op = region.ops.rbegin(); op != region.ops.rend(); ++op) {
      if (slice_.wants(*op)) slice_.take(*op);
      if (!lays_flat(*op)) continue;
      for (auto nested = op->regions.rbegin(); nested != op->regions.rend(); ++nested) close(*nested);
    }
  }

  void declare_arguments() {
    const std::vector<ValueId> entries = entries_of(kernel_);
    std::vector<std::uint32_t> places(kernel_.arguments.size());
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      const Argument& argument = kernel_.arguments[a];
      const bool used = entries[a] != unmapped ? slice_.wants(entries[a]) : slice_.wants_table(a);
      if (!used || argument.role == Role::terminated) continue;
      Argument read = argument;
      if (read.role != Role::param && read.role != Role::table) read.role = Role::mutable_;
      places[a] = static_cast<std::uint32_t>(made_.arguments.size());
      copier_.argument(read, entries[a]);
      made_.arguments.push_back(a);
    }
    copier_.tables_at(std::move(places));
    // A state that is committed as it was found is only read.
    std::size_t entry = 0;
    for (const Argument& argument : copier_.out.arguments) {
      if (!has_entry_value(argument.role)) continue;
      const ValueId value = copier_.out.body.arguments[entry++];
      if (is_committed(argument.role)) copier_.out.body.yields.push_back(value);
    }
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      // A sample that runs is not finished.
      if (kernel_.arguments[a].role == Role::terminated && slice_.wants(entries[a]))
        copier_.map(entries[a], copier_.constant(copier_.out.body, Scalar::boolean, 0));
    }
  }

  // `comes`: whether the sample comes to this region; unmapped: every one does.
  void lay_out(const Region& region, ValueId comes) {
    Region& body = copier_.out.body;
    for (const Op& op : region.ops) {
      const std::size_t group = group_;
      if (op.code == Opcode::switch_ && op.dispatch) {
        ++group_;
        add_selector(group, op, comes);
      }
      if (lays_flat(op)) {
        lay_out_sides(op, comes);
      } else {
        for (const Region& nested : op.regions)
          for_each_group(nested, [this](const Op& /*op*/) { ++group_; });
      }
      if (slice_.wants(op)) copy_whole(op, body);
    }
  }

  void copy_whole(const Op& op, Region& body) { copier_.copy(op, body); }

  void lay_out_sides(const Op& op, ValueId comes) {
    Region& body = copier_.out.body;
    for (std::size_t side = 0; side < op.regions.size(); ++side) {
      if (!has_group(op.regions[side])) continue;
      ValueId here = copier_.now(op.operands[0]);
      if (op.code == Opcode::switch_) {
        here = copier_.add(body, Opcode::eq, {clamped(here, op.regions.size()), integer(side)},
                           {Scalar::boolean});
      } else if (side == 1) {
        here = copier_.add(body, Opcode::logical_not, {here}, {Scalar::boolean});
      }
      if (comes != unmapped) here = copier_.add(body, Opcode::logical_and, {comes, here}, {Scalar::boolean});
      lay_out(op.regions[side], here);
    }
  }

  void add_selector(std::size_t group, const Op& op, ValueId comes) {
    Region& body = copier_.out.body;
    ValueId selector = clamped(copier_.now(op.operands[0]), op.regions.size());
    if (comes != unmapped) {
      const ValueId none = copier_.constant(body, Scalar::i64, ~std::uint64_t{0});
      selector = copier_.add(body, Opcode::select, {comes, selector, none}, {Scalar::i64});
    }
    found_.push_back({group, selector});
  }

  ValueId integer(std::size_t value) { return copier_.constant(copier_.out.body, Scalar::i64, value); }
  ValueId clamped(ValueId selector, std::size_t sides) {
    Region& body = copier_.out.body;
    const ValueId low = copier_.add(body, Opcode::max, {selector, integer(0)}, {Scalar::i64});
    return copier_.add(body, Opcode::min, {low, integer(sides - 1)}, {Scalar::i64});
  }

  const Kernel& kernel_;
  Slice slice_;
  Copier copier_;
  Selectors made_;
  std::size_t group_ = 0;
  std::vector<Found> found_;
};

}  // namespace

std::string free_name(const Kernel& kernel, std::string_view wanted) {
  std::string name(wanted);
  const auto taken = [&] {
    return std::any_of(kernel.arguments.begin(), kernel.arguments.end(),
                       [&](const Argument& argument) { return argument.name == name; });
  };
  while (taken()) name += '_';
  return name;
}

Kernel with_mask(const Kernel& kernel, const std::string& name) {
  Argument mask;
  mask.name = name;
  mask.role = Role::terminated;
  mask.type = {Scalar::boolean};
  Extended made = extended(kernel, std::move(mask));
  Region& body = made.copier.out.body;
  body.yields.push_back(made.copier.constant(body, Scalar::boolean, 0));
  return std::move(made.copier.out);
}

Kernel with_stop_step(const Kernel& kernel, const std::string& name) {
  Argument state;
  state.name = name;
  state.role = Role::mutable_;
  state.type = {Scalar::i64};
  Extended made = extended(kernel, std::move(state));
  Copier& copier = made.copier;
  Region& body = copier.out.body;
  std::size_t mask = 0;  // among the yields
  for (const Argument& argument : kernel.arguments) {
    if (argument.role == Role::terminated) break;
    if (is_committed(argument.role)) ++mask;
  }
  const ValueId step = copier.add(body, Opcode::step_index, {}, {Scalar::i64});
  const ValueId one = copier.constant(body, Scalar::i64, 1);
  const ValueId number = copier.add(body, Opcode::add, {step, one}, {Scalar::i64});
  const ValueId finishes = body.yields[mask];
  body.yields.push_back(copier.add(body, Opcode::select, {finishes, number, made.entry}, {Scalar::i64}));
  return std::move(copier.out);
}

std::vector<Group> groups_of(const Kernel& kernel) {
  std::vector<Group> groups;
  for_each_group(kernel.body, [&](const Op& op) {
    Group group{op.dispatch->name, op.dispatch->policy, op.regions.size(), {}};
    for (const Region& branch : op.regions) group.weights.push_back(weight_of(kernel, branch));
    groups.push_back(std::move(group));
  });
  return groups;
}

DispatchPolicy chosen_policy(const Group& group, std::string_view kernel,
                             const std::vector<PolicyChoice>& choices, std::vector<bool>& used) {
  const std::string full = std::string(kernel) + "." + group.name;
  DispatchPolicy policy = group.policy;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const std::string& named = choices[i].group;
    if (!named.empty() && named != group.name && named != full) continue;
    used[i] = true;
    if (group.policy == DispatchPolicy::automatic) policy = choices[i].policy;
  }
  return policy;
}

Status check_choices(std::string_view owner, const std::vector<PolicyChoice>& choices,
                     const std::vector<bool>& used, const std::vector<std::string>& known) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (name_of(choices[i].policy) == "?") {
      return {Reason::bad_value, "dispatch: policy " + std::to_string(static_cast<int>(choices[i].policy)) +
                                     " is none; expected auto, switch, segmented or predicated"};
    }
    if (choices[i].group.empty() || used[i]) continue;
    std::string names;
    for (const std::string& name : known) {
      if (names.size() < 1000) names += (names.empty() ? "" : ", ") + quote_name(name);
    }
    return {Reason::bad_value,
            "dispatch: there is no group " + quote_name(choices[i].group) + "; " +
                (names.empty() ? std::string(owner) + " has no dispatch groups, leave dispatch= out"
                               : "there is " + names)};
  }
  return {};
}

Kernel with_policies(const Kernel& kernel, const std::vector<DispatchPolicy>& policies) {
  Kernel made = kernel;
  std::size_t group = 0;
  for_each_group(made.body, [&](Op& op) { op.dispatch->policy = policies[group++]; });
  return made;
}

Selectors selectors_of(const Kernel& kernel) { return SelectorMaker(kernel).make(); }

}  // namespace eagle::kernel
