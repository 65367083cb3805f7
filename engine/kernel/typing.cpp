#include "engine/kernel/typing.h"

#include <array>
#include <cstddef>

namespace eagle::kernel {
namespace {

constexpr std::array table = {
    Rule{Opcode::constant, "constant", 0, Typing::constant},
    Rule{Opcode::add, "add", 2, Typing::numbers},
    Rule{Opcode::sub, "sub", 2, Typing::numbers},
    Rule{Opcode::mul, "mul", 2, Typing::numbers},
    Rule{Opcode::div, "div", 2, Typing::reals},
    Rule{Opcode::neg, "neg", 1, Typing::numbers},
    Rule{Opcode::abs, "abs", 1, Typing::numbers},
    Rule{Opcode::min, "min", 2, Typing::numbers},
    Rule{Opcode::max, "max", 2, Typing::numbers},
    Rule{Opcode::sqrt, "sqrt", 1, Typing::reals},
    Rule{Opcode::eq, "eq", 2, Typing::equality},
    Rule{Opcode::ne, "ne", 2, Typing::equality},
    Rule{Opcode::lt, "lt", 2, Typing::order},
    Rule{Opcode::le, "le", 2, Typing::order},
    Rule{Opcode::gt, "gt", 2, Typing::order},
    Rule{Opcode::ge, "ge", 2, Typing::order},
    Rule{Opcode::logical_and, "and", 2, Typing::logic},
    Rule{Opcode::logical_or, "or", 2, Typing::logic},
    Rule{Opcode::logical_xor, "xor", 2, Typing::logic},
    Rule{Opcode::logical_not, "not", 1, Typing::logic},
    Rule{Opcode::select, "select", 3, Typing::choice},
    Rule{Opcode::convert, "convert", 1, Typing::conversion},
    Rule{Opcode::if_, "if", 1, Typing::branch},
};

constexpr Type boolean_type{Scalar::boolean};

// What operand `index` must be whatever the other operands are; empty: nothing.
std::string_view demand(Typing typing, int index, const Type& type) {
  switch (typing) {
    case Typing::numbers:
      return type.scalar != Scalar::boolean ? "" : "reals or integers";
    case Typing::reals:
      return is_real(type.scalar) ? "" : "reals (convert integers to reals first)";
    case Typing::equality:
      return type.rank == 0 ? "" : "a scalar (no extents)";
    case Typing::order:
      return type.rank == 0 && type.scalar != Scalar::boolean ? "" : "a real or integer scalar (no extents)";
    case Typing::logic:
      return type == boolean_type ? "" : "bool";
    case Typing::choice:
      return index != 0 || type == boolean_type ? "" : "bool (the condition)";
    case Typing::branch:
      return type == boolean_type ? "" : "bool (the condition)";
    case Typing::constant:
    case Typing::conversion:
      return "";
  }
  return "";
}

TypeFault fault(int operand, std::string_view expected, std::string_view found) {
  return {operand, "expected " + std::string(expected) + ", found " + std::string(found)};
}

// Operands from `first` on have the type of operand `first`.
std::optional<TypeFault> require_equal(std::span<const Type> operands, std::size_t first) {
  for (std::size_t i = first + 1; i < operands.size(); ++i) {
    if (operands[i] == operands[first]) continue;
    const std::string expected =
        to_string(operands[first]) + " (the type of operand " + std::to_string(first) + ")";
    return fault(static_cast<int>(i), expected, to_string(operands[i]));
  }
  return std::nullopt;
}

std::string counted(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

}  // namespace

std::span<const Rule> rules() { return table; }

const Rule* find_rule(int number) {
  for (const Rule& rule : table) {
    if (static_cast<int>(rule.code) == number) return &rule;
  }
  return nullptr;
}

const Rule* find_rule(std::string_view name) {
  for (const Rule& rule : table) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

const Rule& rule_of(Opcode code) { return *find_rule(static_cast<int>(code)); }

std::string_view name_of(Opcode code) { return rule_of(code).name; }

std::variant<Type, TypeFault> result_type(const Rule& rule, std::span<const Type> operands,
                                          const Type& requested) {
  if (operands.size() != static_cast<std::size_t>(rule.operands)) {
    return fault(-1, counted(static_cast<std::size_t>(rule.operands), "operand"),
                 std::to_string(operands.size()));
  }
  for (int i = 0; i < rule.operands; ++i) {
    const Type& type = operands[static_cast<std::size_t>(i)];
    const std::string_view expected = demand(rule.typing, i, type);
    if (!expected.empty()) return fault(i, expected, to_string(type));
  }
  if (auto unequal = require_equal(operands, rule.typing == Typing::choice ? 1 : 0)) return *unequal;

  switch (rule.typing) {
    case Typing::numbers:
    case Typing::reals:
      return operands[0];
    case Typing::choice:
      return operands[1];
    case Typing::equality:
    case Typing::order:
    case Typing::logic:
    case Typing::branch:
      return boolean_type;
    case Typing::constant:
      if (requested.rank != 0) return fault(-1, "a scalar type (no extents)", to_string(requested));
      return requested;
    case Typing::conversion:
      if (requested.rank != operands[0].rank || requested.extents != operands[0].extents) {
        Type expected = operands[0];
        expected.scalar = requested.scalar;
        return fault(-1, "a conversion to " + to_string(expected) + " (the operand's extents)",
                     to_string(requested));
      }
      return requested;
  }
  return requested;
}

std::optional<TypeFault> compare_yields(std::span<const Type> then_types, std::span<const Type> else_types) {
  if (then_types.size() != else_types.size()) {
    return fault(-1, counted(then_types.size(), "yield") + " (as the then side)",
                 std::to_string(else_types.size()));
  }
  for (std::size_t i = 0; i < then_types.size(); ++i) {
    if (then_types[i] == else_types[i]) continue;
    return fault(static_cast<int>(i), to_string(then_types[i]) + " (as the then side)",
                 to_string(else_types[i]));
  }
  return std::nullopt;
}

}  // namespace eagle::kernel
