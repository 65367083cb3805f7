#include "engine/kernel/diff/forward.h"

#include <algorithm>
#include <utility>

#include "engine/kernel/diff/places.h"

namespace eagle::kernel::diff {

ValueId Forward::dot(ValueId value) {
  return activity_.varied(value) && dots_[value] != none ? dots_[value] : w_.zero(primal_.type(value));
}

Status Forward::ops(const Region& region) {
  for (const Op& op : region.ops) {
    w_.at(op.location);
    EAGLE_RETURN_IF_ERROR(this->op(op));
  }
  return {};
}

Status Forward::op(const Op& op) {
  if (op.code == Opcode::primitive) return primitive(op);
  if (!op.regions.empty()) return structure(op);
  if (op.code == Opcode::accum_add) {
    accum_add(op);
    return {};
  }
  primal_.op(op);
  if (activity_.varied(op.results[0])) plain(op);
  return {};
}

// The author's rule, in place.
Status Forward::primitive(const Op& op) {
  primal_.op(op);
  const bool wanted = std::any_of(op.results.begin(), op.results.end(),
                                  [this](ValueId result) { return activity_.varied(result); });
  if (!wanted) return {};
  const Region& rule = op.regions[1];
  if (is_absent(rule)) return missing_rule(primal_.kernel(), op, "jvp");
  std::vector<ValueId> values = primal_.now(op.operands);
  for (const ValueId operand : op.operands) {
    if (is_real(primal_.type(operand).scalar)) values.push_back(dot(operand));
  }
  primal_.map(rule.arguments, values);
  primal_.ops(rule);
  std::size_t next = 0;
  for (const ValueId result : op.results) {
    if (is_real(primal_.type(result).scalar)) set(result, primal_.now(rule.yields[next++]));
  }
  return {};
}

void Forward::plain(const Op& op) {
  const ValueId result = op.results[0];
  const Type& type = primal_.type(result);
  const auto operand = [&](std::size_t i) { return dot(op.operands[i]); };
  switch (op.code) {
    case Opcode::select:
      return set(result, w_.select(primal_.now(op.operands[0]), operand(1), operand(2)));
    case Opcode::gather:
      return set(result, w_.gather(dot_tables_[op.argument], primal_.now(op.operands)));
    case Opcode::convert:
      return set(result, w_.op(Opcode::convert, {operand(0)}, type));
    case Opcode::compose: {
      std::vector<ValueId> components;
      for (std::size_t i = 0; i < op.operands.size(); ++i) components.push_back(operand(i));
      return set(result, w_.op(Opcode::compose, std::move(components), type));
    }
    case Opcode::extract:
      return set(result, w_.extract(operand(0), op.component));
    default:
      return set(result, elementwise(op));
  }
}

ValueId Forward::elementwise(const Op& op) {
  const Type& type = primal_.type(op.results[0]);
  const std::vector<ValueId> operands = primal_.now(op.operands);
  const bool norm = op.code == Opcode::sqrt && activity_.is_square_sum(op.operands[0]);
  const Use use{op.code, operands, primal_.now(op.results[0]), norm};
  ValueId sum = none;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!activity_.varied(op.operands[i])) continue;
    const Term found = term(w_, use, i, dot(op.operands[i]));
    if (found.value != none) sum = sum == none ? found.value : w_.add(sum, found.value);
  }
  return sum == none ? w_.zero(type) : sum;
}

void Forward::accum_add(const Op& op) {
  if (!activity_.varied(op.operands[0])) return;
  std::vector<ValueId> indices = primal_.now(op.operands);
  indices.erase(indices.begin());
  w_.accum_add(dot_tables_[op.argument], dot(op.operands[0]), indices);
}

// Tangents of varied values leave regions, and are carried by loops, behind the values themselves.
Status Forward::structure(const Op& op) {
  Op made = primal_.moved(op);
  if (op.code == Opcode::while_) {
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (activity_.varied(op.results[i])) made.operands.push_back(dot(op.operands[i]));
    }
  }
  for (std::size_t r = 0; r < op.regions.size(); ++r) {
    EAGLE_ASSIGN_OR_RETURN(Region nested, region(op, r));
    made.regions.push_back(std::move(nested));
  }
  made.results = primal_.results_of(op);
  for (const ValueId result : op.results) {
    if (!activity_.varied(result)) continue;
    made.results.push_back(w_.fresh(primal_.type(result)));
    set(result, made.results.back());
  }
  w_.push(std::move(made));
  return {};
}

StatusOr<Region> Forward::region(const Op& op, std::size_t number) {
  const Region& from = op.regions[number];
  w_.begin();
  for (const ValueId argument : from.arguments)
    primal_.map(argument, w_.region_argument(primal_.type(argument)));
  for (const ValueId argument : from.arguments) {
    if (activity_.varied(argument)) set(argument, w_.region_argument(primal_.type(argument)));
  }
  EAGLE_RETURN_IF_ERROR(ops(from));
  std::vector<ValueId> yields = primal_.now(from.yields);
  if (op.code != Opcode::while_ || number == 1) {
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      if (activity_.varied(op.results[i])) yields.push_back(dot(from.yields[i]));
    }
  }
  return w_.end(std::move(yields));
}

}  // namespace eagle::kernel::diff
