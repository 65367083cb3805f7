// Copier: makes a kernel out of the parts of others, value by value. Inside of transforms alone.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/kernel/ir.h"

namespace eagle::kernel {

constexpr ValueId unmapped = ~ValueId{0};

// Copies a kernel value by value, in the order in which values are numbered.
class Copier {
public:
  explicit Copier(const Kernel& from) {
    begin(from);
    out.name = from.name;
    out.real = from.real;
    out.source_files = from.source_files;
  }

  Kernel out;

  // What is copied from here on are parts of this kernel, which outlives the copying.
  void begin(const Kernel& from) {
    from_ = &from;
    map_.assign(from.value_types.size(), unmapped);
    tables_.clear();
  }

  ValueId fresh(const Type& type) {
    out.value_types.push_back(type);
    return static_cast<ValueId>(out.value_types.size() - 1);
  }
  void map(ValueId old, ValueId now) { map_[old] = now; }
  [[nodiscard]] ValueId now(ValueId old) const { return map_[old]; }
  // Tables that an op names are found at these arguments; unless told, where they were.
  void tables_at(std::vector<std::uint32_t> arguments) { tables_ = std::move(arguments); }
  [[nodiscard]] const Type& type_of(ValueId old) const { return from_->value_types[old]; }

  // The argument with its entry value, where it has one.
  void argument(const Argument& argument, ValueId entry) {
    out.arguments.push_back(argument);
    if (!has_entry_value(argument.role)) return;
    map(entry, fresh(argument.type));
    out.body.arguments.push_back(now(entry));
  }

  void region(const Region& from, Region& to) {
    for (const ValueId carried : from.arguments) {
      map(carried, fresh(type_of(carried)));
      to.arguments.push_back(now(carried));
    }
    for (const Op& op : from.ops) copy(op, to);
    for (const ValueId yield : from.yields) to.yields.push_back(now(yield));
  }

  void copy(const Op& op, Region& to) {
    Op made = op;
    const bool names_table = op.code == Opcode::gather || op.code == Opcode::length;
    if (names_table && !tables_.empty()) made.argument = tables_[op.argument];
    for (ValueId& operand : made.operands) operand = now(operand);
    for (std::size_t r = 0; r < op.regions.size(); ++r) {
      made.regions[r] = {};
      region(op.regions[r], made.regions[r]);
    }
    for (ValueId& result : made.results) {
      const ValueId old = result;
      result = fresh(type_of(old));
      map(old, result);
    }
    to.ops.push_back(std::move(made));
  }

  ValueId add(Region& to, Opcode code, std::vector<ValueId> operands, const Type& type,
              std::uint64_t bits = 0) {
    Op op;
    op.code = code;
    op.operands = std::move(operands);
    op.bits = bits;
    op.results = {fresh(type)};
    to.ops.push_back(std::move(op));
    return to.ops.back().results[0];
  }
  ValueId constant(Region& to, Scalar scalar, std::uint64_t bits) {
    return add(to, Opcode::constant, {}, {scalar}, bits);
  }

private:
  const Kernel* from_ = nullptr;
  std::vector<ValueId> map_;
  std::vector<std::uint32_t> tables_;
};

// By argument: its entry value, or `unmapped`.
inline std::vector<ValueId> entries_of(const Kernel& kernel) {
  std::vector<ValueId> entries;
  std::size_t next = 0;
  for (const Argument& argument : kernel.arguments)
    entries.push_back(has_entry_value(argument.role) ? kernel.body.arguments[next++] : unmapped);
  return entries;
}

}  // namespace eagle::kernel
