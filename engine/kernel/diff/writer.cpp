#include "engine/kernel/diff/writer.h"

#include <bit>

namespace eagle::kernel::diff {

std::vector<ValueId> Writer::structure(Opcode code, std::vector<ValueId> operands,
                                       std::vector<Region> regions, const std::vector<Type>& results,
                                       std::uint64_t max_trips) {
  Op made;
  made.code = code;
  made.operands = std::move(operands);
  made.regions = std::move(regions);
  made.max_trips = max_trips;
  for (const Type& result : results) made.results.push_back(fresh(result));
  std::vector<ValueId> values = made.results;
  push(std::move(made));
  return values;
}

std::vector<ValueId> Writer::branch(ValueId condition, Region then, Region otherwise) {
  std::vector<Type> types;
  for (const ValueId yield : then.yields) types.push_back(type(yield));
  std::vector<Region> regions;
  regions.push_back(std::move(then));
  regions.push_back(std::move(otherwise));
  return structure(Opcode::if_, {condition}, std::move(regions), types);
}

std::vector<ValueId> Writer::loop(std::vector<ValueId> initial, std::uint64_t max_trips, Region condition,
                                  Region body) {
  std::vector<Type> types;
  for (const ValueId value : initial) types.push_back(type(value));
  std::vector<Region> regions;
  regions.push_back(std::move(condition));
  regions.push_back(std::move(body));
  return structure(Opcode::while_, std::move(initial), std::move(regions), types, max_trips);
}

ValueId Writer::op(Opcode code, std::vector<ValueId> operands, const Type& type) {
  Op made;
  made.code = code;
  made.operands = std::move(operands);
  const ValueId result = fresh(type);
  made.results = {result};
  push(std::move(made));
  return result;
}

ValueId Writer::extract(ValueId a, std::size_t component) {
  if (type(a).rank == 0) return a;
  Op made;
  made.code = Opcode::extract;
  made.operands = {a};
  made.component = static_cast<std::uint32_t>(component);
  const ValueId result = fresh(scalar_of(type(a)));
  made.results = {result};
  push(std::move(made));
  return result;
}

ValueId Writer::gather(std::size_t table, std::vector<ValueId> indices) {
  Op made;
  made.code = Opcode::gather;
  made.argument = static_cast<std::uint32_t>(table);
  made.operands = std::move(indices);
  const ValueId result = fresh(out.arguments[table].type);
  made.results = {result};
  push(std::move(made));
  return result;
}

ValueId Writer::length(std::size_t indexed) {
  Op made;
  made.code = Opcode::length;
  made.argument = static_cast<std::uint32_t>(indexed);
  const ValueId result = fresh(integer_type);
  made.results = {result};
  push(std::move(made));
  return result;
}

void Writer::accum_add(std::size_t accumulator, ValueId value, const std::vector<ValueId>& indices) {
  Op made;
  made.code = Opcode::accum_add;
  made.argument = static_cast<std::uint32_t>(accumulator);
  made.operands = {value};
  made.operands.insert(made.operands.end(), indices.begin(), indices.end());
  push(std::move(made));
}

ValueId Writer::known(const ConstantKey& key) const {
  for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
    if (const auto found = open->constants.find(key); found != open->constants.end()) return found->second;
  }
  return none;
}

ValueId Writer::constant(Scalar scalar, std::uint64_t bits) {
  const ConstantKey key{scalar, 0, 1, 1, bits};
  if (const ValueId value = known(key); value != none) return value;
  Op made;
  made.code = Opcode::constant;
  made.bits = bits;
  const ValueId result = fresh({scalar});
  made.results = {result};
  push(std::move(made));
  open_.back().constants.emplace(key, result);
  return result;
}

ValueId Writer::real(const Type& type, double number) {
  const std::uint64_t bits = type.scalar == Scalar::f64
                                 ? std::bit_cast<std::uint64_t>(number)
                                 : std::bit_cast<std::uint32_t>(static_cast<float>(number));
  if (type.rank == 0) return constant(type.scalar, bits);
  const ConstantKey key{type.scalar, type.rank, type.extents[0], type.extents[1], bits};
  if (const ValueId value = known(key); value != none) return value;
  const auto components = static_cast<std::size_t>(type.components());
  const ValueId result =
      op(Opcode::compose, std::vector<ValueId>(components, constant(type.scalar, bits)), type);
  open_.back().constants.emplace(key, result);
  return result;
}

}  // namespace eagle::kernel::diff
