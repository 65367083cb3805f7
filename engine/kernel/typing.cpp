#include "engine/kernel/typing.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace eagle::kernel {
namespace {

constexpr std::array table = {
    Rule{Opcode::constant, "constant", 0, Typing::constant},
    Rule{Opcode::sample_index, "sample_index", 0, Typing::position},
    Rule{Opcode::n_samples, "n_samples", 0, Typing::position},
    Rule{Opcode::step_index, "step_index", 0, Typing::position},
    Rule{Opcode::add, "add", 2, Typing::numbers},
    Rule{Opcode::sub, "sub", 2, Typing::numbers},
    Rule{Opcode::mul, "mul", 2, Typing::numbers},
    Rule{Opcode::div, "div", 2, Typing::reals},
    Rule{Opcode::neg, "neg", 1, Typing::numbers},
    Rule{Opcode::abs, "abs", 1, Typing::numbers},
    Rule{Opcode::min, "min", 2, Typing::numbers},
    Rule{Opcode::max, "max", 2, Typing::numbers},
    Rule{Opcode::sqrt, "sqrt", 1, Typing::reals},
    Rule{Opcode::floor_div, "floor_div", 2, Typing::integers},
    Rule{Opcode::modulo, "modulo", 2, Typing::integers},
    Rule{Opcode::shift_left, "shift_left", 2, Typing::integers},
    Rule{Opcode::shift_right, "shift_right", 2, Typing::integers},
    Rule{Opcode::bit_and, "bit_and", 2, Typing::integers},
    Rule{Opcode::bit_or, "bit_or", 2, Typing::integers},
    Rule{Opcode::bit_xor, "bit_xor", 2, Typing::integers},
    Rule{Opcode::bit_not, "bit_not", 1, Typing::integers},
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
    Rule{Opcode::while_, "while", any_number, Typing::loop},
    Rule{Opcode::switch_, "switch", 1, Typing::selection},
    Rule{Opcode::primitive, "primitive", any_number, Typing::primitive},
    Rule{Opcode::gather, "gather", any_number, Typing::lookup},
    Rule{Opcode::length, "length", 0, Typing::extent},
    Rule{Opcode::accum_add, "accum_add", any_number, Typing::addition},
    Rule{Opcode::compose, "compose", any_number, Typing::composition},
    Rule{Opcode::extract, "extract", 1, Typing::component},
    Rule{Opcode::fma, "fma", 3, Typing::reals},
    Rule{Opcode::pow, "pow", 2, Typing::reals},
    Rule{Opcode::rsqrt, "rsqrt", 1, Typing::reals},
    Rule{Opcode::cbrt, "cbrt", 1, Typing::reals},
    Rule{Opcode::hypot, "hypot", 2, Typing::reals},
    Rule{Opcode::exp, "exp", 1, Typing::reals},
    Rule{Opcode::exp2, "exp2", 1, Typing::reals},
    Rule{Opcode::expm1, "expm1", 1, Typing::reals},
    Rule{Opcode::log, "log", 1, Typing::reals},
    Rule{Opcode::log2, "log2", 1, Typing::reals},
    Rule{Opcode::log10, "log10", 1, Typing::reals},
    Rule{Opcode::log1p, "log1p", 1, Typing::reals},
    Rule{Opcode::erf, "erf", 1, Typing::reals},
    Rule{Opcode::erfc, "erfc", 1, Typing::reals},
    Rule{Opcode::sin, "sin", 1, Typing::reals},
    Rule{Opcode::cos, "cos", 1, Typing::reals},
    Rule{Opcode::tan, "tan", 1, Typing::reals},
    Rule{Opcode::asin, "asin", 1, Typing::reals},
    Rule{Opcode::acos, "acos", 1, Typing::reals},
    Rule{Opcode::atan, "atan", 1, Typing::reals},
    Rule{Opcode::atan2, "atan2", 2, Typing::reals},
    Rule{Opcode::sinh, "sinh", 1, Typing::reals},
    Rule{Opcode::cosh, "cosh", 1, Typing::reals},
    Rule{Opcode::tanh, "tanh", 1, Typing::reals},
    Rule{Opcode::asinh, "asinh", 1, Typing::reals},
    Rule{Opcode::acosh, "acosh", 1, Typing::reals},
    Rule{Opcode::atanh, "atanh", 1, Typing::reals},
    Rule{Opcode::floor, "floor", 1, Typing::reals},
    Rule{Opcode::ceil, "ceil", 1, Typing::reals},
    Rule{Opcode::trunc, "trunc", 1, Typing::reals},
    Rule{Opcode::round, "round", 1, Typing::reals},
    Rule{Opcode::rint, "rint", 1, Typing::reals},
    Rule{Opcode::fmod, "fmod", 2, Typing::reals},
    Rule{Opcode::remainder, "remainder", 2, Typing::reals},
    Rule{Opcode::floor_quotient, "floor_quotient", 2, Typing::reals},
    Rule{Opcode::sign, "sign", 1, Typing::reals},
    Rule{Opcode::copysign, "copysign", 2, Typing::reals},
    Rule{Opcode::fdim, "fdim", 2, Typing::reals},
    Rule{Opcode::clip, "clip", 3, Typing::reals},
    Rule{Opcode::isnan, "isnan", 1, Typing::question},
    Rule{Opcode::isinf, "isinf", 1, Typing::question},
    Rule{Opcode::isfinite, "isfinite", 1, Typing::question},
    Rule{Opcode::random_words, "random_words", 2, Typing::random},
};

constexpr Type boolean_type{Scalar::boolean};
constexpr Type index_type{Scalar::i64};
constexpr Type words_type{Scalar::i64, 1, {4, 1}};

// What operand `index` must be whatever the other operands are; empty: nothing.
std::string_view demand(Typing typing, int index, const Type& type) {
  switch (typing) {
    case Typing::numbers:
      return type.scalar != Scalar::boolean ? "" : "reals or integers";
    case Typing::reals:
      return is_real(type.scalar) ? "" : "reals (convert integers to reals first)";
    case Typing::integers:
      return is_integer(type.scalar) ? "" : "integers";
    case Typing::equality:
    case Typing::composition:
      return type.rank == 0 ? "" : "a scalar (no extents)";
    case Typing::order:
      return type.rank == 0 && type.scalar != Scalar::boolean ? "" : "a real or integer scalar (no extents)";
    case Typing::question:
      return type.rank == 0 && is_real(type.scalar) ? "" : "a real scalar (no extents)";
    case Typing::logic:
      return type == boolean_type ? "" : "bool";
    case Typing::choice:
      return index != 0 || type == boolean_type ? "" : "bool (the condition)";
    case Typing::branch:
      return type == boolean_type ? "" : "bool (the condition)";
    case Typing::selection:
      return type == index_type ? "" : "i64 (the selector)";
    case Typing::lookup:
      return type == index_type ? "" : "i64 (an index)";
    case Typing::addition:
      return index == 0 || type == index_type ? "" : "i64 (an index)";
    case Typing::random:
      return type == index_type ? "" : index == 0 ? "i64 (the seed)" : "i64 (the counter)";
    case Typing::component:
      return type.rank != 0 ? "" : "a vector or matrix";
    case Typing::constant:
    case Typing::position:
    case Typing::conversion:
    case Typing::loop:
    case Typing::extent:
    case Typing::primitive:
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

// How many operands the op has; each kind of op that may have any number says here what the number is.
std::optional<TypeFault> check_count(const Rule& rule, std::size_t operands, const Stated& stated) {
  std::size_t expected = operands;
  std::string_view why;
  if (rule.operands != any_number) {
    expected = static_cast<std::size_t>(rule.operands);
  } else if (rule.typing == Typing::lookup) {
    expected = std::max<std::size_t>(stated.table->axes.size(), 1);
    why = " (one for each axis of the table)";
  } else if (rule.typing == Typing::addition) {
    expected = 1 + std::max<std::size_t>(stated.table->axes.size(), 1);
    why = " (the value and one for each axis of the accumulator)";
  } else if (rule.typing == Typing::composition) {
    expected = static_cast<std::size_t>(stated.type.components());
    why = " (one for each component)";
  }
  if (operands == expected) return std::nullopt;
  return fault(-1, counted(expected, "operand") + std::string(why), std::to_string(operands));
}

using TypeOrFault = std::variant<Type, TypeFault>;

TypeOrFault converted_type(const Type& operand, const Type& stated) {
  Type expected = operand;
  expected.scalar = stated.scalar;
  if (stated == expected) return stated;
  return fault(-1, "a conversion to " + to_string(expected) + " (the operand's extents)", to_string(stated));
}

TypeOrFault composed_type(const Type& operand, const Type& stated) {
  if (stated.rank == 0) return fault(-1, "the type of a vector or matrix", to_string(stated));
  if (stated.scalar == operand.scalar) return stated;
  return fault(-1, "a type of " + to_string(operand) + " (the type of the operands)", to_string(stated));
}

TypeOrFault component_type(const Type& operand, std::uint32_t component) {
  if (component < static_cast<std::uint32_t>(operand.components())) return Type{operand.scalar};
  return fault(-1, "a component below " + std::to_string(operand.components()) + " of " + to_string(operand),
               std::to_string(component));
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
                                          const Stated& stated) {
  if (auto uncounted = check_count(rule, operands.size(), stated)) return *uncounted;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string_view expected = demand(rule.typing, static_cast<int>(i), operands[i]);
    if (!expected.empty()) return fault(static_cast<int>(i), expected, to_string(operands[i]));
  }
  if (rule.typing == Typing::addition && operands[0] != stated.table->type) {
    return fault(0, to_string(stated.table->type) + " (the type of the accumulator's elements)",
                 to_string(operands[0]));
  }
  if (rule.typing != Typing::loop && rule.typing != Typing::addition && rule.typing != Typing::primitive) {
    if (auto unequal = require_equal(operands, rule.typing == Typing::choice ? 1 : 0)) return *unequal;
  }

  switch (rule.typing) {
    case Typing::numbers:
    case Typing::reals:
    case Typing::integers:
      return operands[0];
    case Typing::choice:
      return operands[1];
    case Typing::equality:
    case Typing::order:
    case Typing::question:
    case Typing::logic:
      return boolean_type;
    case Typing::position:
    case Typing::extent:
      return index_type;
    case Typing::constant:
      if (stated.type.rank != 0) return fault(-1, "a scalar type (no extents)", to_string(stated.type));
      return stated.type;
    case Typing::conversion:
      return converted_type(operands[0], stated.type);
    case Typing::lookup:
      return stated.table->type;
    case Typing::composition:
      return composed_type(operands[0], stated.type);
    case Typing::component:
      return component_type(operands[0], stated.component);
    case Typing::random:
      return words_type;
    case Typing::branch:
    case Typing::loop:
    case Typing::selection:
    case Typing::addition:
    case Typing::primitive:
      return Type{};
  }
  return Type{};
}

PrimitiveTypes primitive_types(std::size_t region, std::span<const Type> operands,
                               std::span<const Type> results) {
  PrimitiveTypes types{{operands.begin(), operands.end()}, {}};
  const auto append_reals = [](std::span<const Type> from, std::vector<Type>& to) {
    std::copy_if(from.begin(), from.end(), std::back_inserter(to),
                 [](const Type& type) { return is_real(type.scalar); });
  };
  if (region == 1) {
    append_reals(operands, types.arguments);
    append_reals(results, types.yields);
  } else if (region == 2) {
    append_reals(results, types.arguments);
    append_reals(operands, types.yields);
  }
  return types;
}

std::optional<TypeFault> compare_yields(std::span<const Type> expected, std::span<const Type> found,
                                        std::string_view as) {
  const std::string like = " (as " + std::string(as) + ")";
  if (expected.size() != found.size()) {
    return fault(-1, counted(expected.size(), "yield") + like, std::to_string(found.size()));
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == found[i]) continue;
    return fault(static_cast<int>(i), to_string(expected[i]) + like, to_string(found[i]));
  }
  return std::nullopt;
}

}  // namespace eagle::kernel
