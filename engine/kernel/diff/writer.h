// Writer: writes the ops of a new kernel, region by region. Inside of this folder alone.
//
// Values are in no particular order and ops may be superfluous; `pruned` (prune.h) puts both right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/kernel/ir.h"

namespace eagle::kernel::diff {

constexpr ValueId none = ~ValueId{0};
constexpr Type boolean_type{Scalar::boolean};
constexpr Type integer_type{Scalar::i64};

inline Type scalar_of(const Type& type) { return {type.scalar}; }

class Writer {
public:
  explicit Writer(const Kernel& like) {
    out.real = like.real;
    out.source_files = like.source_files;
    begin();
  }

  Kernel out;  // `body` is set by whoever ends the first region

  // By value: the next op moves the types.
  [[nodiscard]] Type type(ValueId value) const { return out.value_types[value]; }
  ValueId fresh(const Type& type) {
    out.value_types.push_back(type);
    return static_cast<ValueId>(out.value_types.size() - 1);
  }
  // Ops from here on come from this place.
  void at(const Location& location) { location_ = location; }

  // ---- regions: what is written goes into the one that was begun last

  void begin() { open_.emplace_back(); }
  // Ends it. More may be said about its yields before it becomes part of an op.
  Region end(std::vector<ValueId> yields = {}) {
    Region region = std::move(open_.back().region);
    open_.pop_back();
    region.yields = std::move(yields);
    return region;
  }
  ValueId region_argument(const Type& type) {
    open_.back().region.arguments.push_back(fresh(type));
    return open_.back().region.arguments.back();
  }
  std::vector<ValueId> structure(Opcode code, std::vector<ValueId> operands, std::vector<Region> regions,
                                 const std::vector<Type>& results, std::uint64_t max_trips = 0);
  std::vector<ValueId> branch(ValueId condition, Region then, Region otherwise);
  // Operands, and what both regions have as arguments, are of the same types.
  std::vector<ValueId> loop(std::vector<ValueId> initial, std::uint64_t max_trips, Region condition,
                            Region body);

  // ---- ops

  void push(Op op) {
    if (op.location == Location{}) op.location = location_;
    open_.back().region.ops.push_back(std::move(op));
  }
  ValueId op(Opcode code, std::vector<ValueId> operands, const Type& type);
  // Of the type of the first operand.
  ValueId add(ValueId a, ValueId b) { return op(Opcode::add, {a, b}, type(a)); }
  ValueId sub(ValueId a, ValueId b) { return op(Opcode::sub, {a, b}, type(a)); }
  ValueId mul(ValueId a, ValueId b) { return op(Opcode::mul, {a, b}, type(a)); }
  ValueId div(ValueId a, ValueId b) { return op(Opcode::div, {a, b}, type(a)); }
  ValueId neg(ValueId a) { return op(Opcode::neg, {a}, type(a)); }
  ValueId of(Opcode code, ValueId a) { return op(code, {a}, type(a)); }
  ValueId of(Opcode code, ValueId a, ValueId b) { return op(code, {a, b}, type(a)); }
  ValueId compare(Opcode code, ValueId a, ValueId b) { return op(code, {a, b}, boolean_type); }
  ValueId both(ValueId a, ValueId b) { return op(Opcode::logical_and, {a, b}, boolean_type); }
  ValueId either(ValueId a, ValueId b) { return op(Opcode::logical_or, {a, b}, boolean_type); }
  ValueId inverse(ValueId a) { return op(Opcode::logical_not, {a}, boolean_type); }
  ValueId select(ValueId condition, ValueId a, ValueId b) {
    return op(Opcode::select, {condition, a, b}, type(a));
  }
  ValueId extract(ValueId a, std::size_t component);
  ValueId gather(std::size_t table, std::vector<ValueId> indices);
  ValueId length(std::size_t indexed);
  void accum_add(std::size_t accumulator, ValueId value, const std::vector<ValueId>& indices);

  // Constants, each written once a region.
  ValueId constant(Scalar scalar, std::uint64_t bits);
  // Every component of a value of this real type.
  ValueId real(const Type& type, double number);
  ValueId zero(const Type& type) { return real(type, 0.0); }
  ValueId integer(std::int64_t number) { return constant(Scalar::i64, static_cast<std::uint64_t>(number)); }
  ValueId boolean(bool holds) { return constant(Scalar::boolean, holds ? 1 : 0); }

private:
  using ConstantKey = std::tuple<Scalar, std::uint8_t, std::uint16_t, std::uint16_t, std::uint64_t>;
  struct Open {
    Region region;
    std::map<ConstantKey, ValueId> constants;
  };
  [[nodiscard]] ValueId known(const ConstantKey& key) const;

  std::vector<Open> open_;
  Location location_;
};

}  // namespace eagle::kernel::diff
