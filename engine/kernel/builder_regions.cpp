// The builder's ops with regions: if, while and switch.
#include <utility>

#include "engine/kernel/builder.h"
#include "engine/kernel/typing.h"

namespace eagle::kernel {

void KernelBuilder::begin_if(Value condition) {
  Op op;
  op.code = Opcode::if_;
  begin(std::move(op), {condition});
}

void KernelBuilder::otherwise(const std::vector<Value>& then_yields) {
  if (!usable(then_yields, "otherwise")) return;
  if (!innermost_is(Opcode::if_, 0)) {
    refuse("otherwise: no if is open whose else side has not begun");
    return;
  }
  end_region(then_yields, "otherwise");
}

std::vector<KernelBuilder::Value> KernelBuilder::end_if(const std::vector<Value>& else_yields) {
  // After an error the caller may still index the results.
  std::vector<Value> none(else_yields.size());
  if (!usable(else_yields, "end_if")) return none;
  if (!innermost_is(Opcode::if_, 1)) {
    refuse("end_if: no if is open whose else side has begun (call otherwise first)");
    return none;
  }
  return end_region(else_yields, "end_if") ? end() : none;
}

std::vector<KernelBuilder::Value> KernelBuilder::begin_while(const std::vector<Value>& initial,
                                                             std::uint64_t max_trips) {
  carried_.push_back(initial.size());
  Op op;
  op.code = Opcode::while_;
  op.max_trips = max_trips;
  if (max_trips == 0) refuse("begin_while: expected at least 1 for max_trips, found 0");
  if (!begin(std::move(op), initial)) return std::vector<Value>(initial.size());
  for (const Value& value : initial) open_.back().yields.push_back(value.type);
  return carry();
}

std::vector<KernelBuilder::Value> KernelBuilder::while_condition(Value holds) {
  std::vector<Value> none(carried_.empty() ? 0 : carried_.back());
  if (!usable({holds}, "while_condition")) return none;
  if (!innermost_is(Opcode::while_, 0)) {
    refuse("while_condition: no while is open whose condition is being built");
    return none;
  }
  if (holds.type != Type{Scalar::boolean}) {
    refuse("while_condition: expected bool, found " + to_string(holds.type));
    return none;
  }
  return end_region({holds}, "while_condition") ? carry() : none;
}

std::vector<KernelBuilder::Value> KernelBuilder::end_while(const std::vector<Value>& next) {
  std::vector<Value> none(next.size());
  if (!carried_.empty()) {
    none.resize(carried_.back());
    carried_.pop_back();
  }
  if (!usable(next, "end_while")) return none;
  if (!innermost_is(Opcode::while_, 1)) {
    refuse("end_while: no while is open whose body has begun (call while_condition first)");
    return none;
  }
  return end_region(next, "end_while") ? end() : none;
}

void KernelBuilder::begin_switch(Value selector, std::optional<Dispatch> dispatch) {
  Op op;
  op.code = Opcode::switch_;
  op.dispatch = std::move(dispatch);
  begin(std::move(op), {selector});
}

void KernelBuilder::next_case(const std::vector<Value>& yields) {
  if (!usable(yields, "next_case")) return;
  if (open_.empty() || open_.back().op.code != Opcode::switch_) {
    refuse("next_case: no switch is open");
    return;
  }
  end_region(yields, "next_case");
}

std::vector<KernelBuilder::Value> KernelBuilder::end_switch(const std::vector<Value>& yields) {
  std::vector<Value> none(yields.size());
  if (!usable(yields, "end_switch")) return none;
  if (open_.empty() || open_.back().op.code != Opcode::switch_) {
    refuse("end_switch: no switch is open");
    return none;
  }
  return end_region(yields, "end_switch") ? end() : none;
}

std::vector<KernelBuilder::Value> KernelBuilder::begin_primitive(const std::vector<Value>& operands) {
  Op op;
  op.code = Opcode::primitive;
  if (!begin(std::move(op), operands)) return std::vector<Value>(operands.size());
  for (const Value& operand : operands) open_.back().operands.push_back(operand.type);
  return begin_primitive_region(0);
}

std::vector<KernelBuilder::Value> KernelBuilder::primitive_jvp(const std::vector<Value>& results) {
  if (!end_primitive_region(results, "primitive_jvp")) return {};
  if (open_.back().op.regions.size() != 1) {
    refuse("primitive_jvp: it comes first behind what the primitive computes");
    return {};
  }
  return begin_primitive_region(1);
}

std::vector<KernelBuilder::Value> KernelBuilder::primitive_vjp(const std::vector<Value>& yields) {
  if (!end_primitive_region(yields, "primitive_vjp")) return {};
  if (open_.back().op.regions.size() > 2) {
    refuse("primitive_vjp: this primitive has one already");
    return {};
  }
  open_.back().op.regions.resize(2);  // without a jvp its region is empty
  return begin_primitive_region(2);
}

std::vector<KernelBuilder::Value> KernelBuilder::end_primitive(const std::vector<Value>& yields) {
  if (!end_primitive_region(yields, "end_primitive")) return {};
  open_.back().op.regions.resize(3);
  return end();
}

bool KernelBuilder::end_primitive_region(const std::vector<Value>& yields, std::string_view user) {
  if (!usable(yields, user)) return false;
  if (open_.empty() || open_.back().op.code != Opcode::primitive) {
    refuse(std::string(user) + ": no primitive is open");
    return false;
  }
  Open& open = open_.back();
  const std::size_t number = open.op.regions.size();
  std::vector<Type> types;
  for (const Value& value : yields) types.push_back(value.type);
  if (number == 0) {
    open.yields = types;
  } else {
    const std::vector<Type> expected = primitive_types(number, open.operands, open.yields).yields;
    if (const auto fault =
            compare_yields(expected, types, number == 1 ? "the real results" : "the real operands")) {
      const std::string which = fault->operand < 0 ? "" : "yield " + std::to_string(fault->operand) + ": ";
      refuse(std::string(user) + ": " + which + fault->message);
      return false;
    }
  }
  for (const Value& value : yields) region_.yields.push_back(value.id);
  open.op.regions.push_back(std::exchange(region_, {}));
  return true;
}

std::vector<KernelBuilder::Value> KernelBuilder::begin_primitive_region(std::size_t region) {
  const Open& open = open_.back();
  std::vector<Value> values;
  for (const Type& type : primitive_types(region, open.operands, open.yields).arguments) {
    values.push_back(new_value(type));
    region_.arguments.push_back(values.back().id);
  }
  return values;
}

// Opens the op's first region, which from here on is the one being filled.
bool KernelBuilder::begin(Op op, const std::vector<Value>& operands) {
  const Rule& rule = rule_of(op.code);
  if (!usable(operands, rule.name) || !checked_type(rule, operands, {})) return false;
  for (const Value& operand : operands) op.operands.push_back(operand.id);
  op.location = location_;
  Open open;
  open.op = std::move(op);
  open.enclosing = std::exchange(region_, {});
  open_.push_back(std::move(open));
  return true;
}

bool KernelBuilder::innermost_is(Opcode code, std::size_t ended_regions) const {
  return !open_.empty() && open_.back().op.code == code && open_.back().op.regions.size() == ended_regions;
}

// Ends the region being filled and begins an empty one.
bool KernelBuilder::end_region(const std::vector<Value>& yields, std::string_view user) {
  Open& open = open_.back();
  std::vector<Type> types;
  std::vector<ValueId> ids;
  for (const Value& value : yields) {
    types.push_back(value.type);
    ids.push_back(value.id);
  }
  const bool is_loop = open.op.code == Opcode::while_;
  const bool is_condition = is_loop && open.op.regions.empty();
  if (!is_loop && open.op.regions.empty()) open.yields = types;
  const std::string_view as = is_loop                       ? "the carried values"
                              : open.op.code == Opcode::if_ ? "the then side"
                                                            : "the first case";
  const auto fault = is_condition ? std::nullopt : compare_yields(open.yields, types, as);
  if (fault) {
    const std::string which = fault->operand < 0 ? "" : "yield " + std::to_string(fault->operand) + ": ";
    refuse(std::string(user) + ": " + which + fault->message);
    return false;
  }
  region_.yields = std::move(ids);
  open.op.regions.push_back(std::exchange(region_, {}));
  return true;
}

// The carried values as the loop's current region sees them.
std::vector<KernelBuilder::Value> KernelBuilder::carry() {
  std::vector<Value> values;
  for (const Type& type : open_.back().yields) {
    values.push_back(new_value(type));
    region_.arguments.push_back(values.back().id);
  }
  return values;
}

// Closes the innermost op, whose last region has ended.
std::vector<KernelBuilder::Value> KernelBuilder::end() {
  Open open = std::move(open_.back());
  open_.pop_back();
  region_ = std::move(open.enclosing);
  std::vector<Value> results;
  for (const Type& type : open.yields) {
    results.push_back(new_value(type));
    open.op.results.push_back(results.back().id);
  }
  region_.ops.push_back(std::move(open.op));
  return results;
}

}  // namespace eagle::kernel
