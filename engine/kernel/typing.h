// What each opcode takes and gives. The one table that the verifier, the builder, the text form and the
// generator of random kernels share; a new plain operation is one row here and one case in the interpreter.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "engine/kernel/ir.h"

namespace eagle::kernel {

// The type rule of an opcode. T is any type, S one of rank 0.
enum class Typing : std::uint8_t {
  constant,    // () -> the requested type, of rank 0
  numbers,     // (T, ...) -> T, real or integer
  reals,       // (T, ...) -> T, real
  equality,    // (S, S) -> bool
  order,       // (S, S) -> bool, real or integer
  logic,       // (bool, ...) -> bool
  choice,      // (bool, T, T) -> T
  conversion,  // (T) -> the requested type, with T's extents
  branch,      // (bool) -> what its two regions yield
};

struct Rule {
  Opcode code;
  std::string_view name;  // as in the text form
  int operands;
  Typing typing;

  // Whether the op states its result type instead of having it inferred.
  [[nodiscard]] bool states_type() const {
    return typing == Typing::constant || typing == Typing::conversion;
  }
};

std::span<const Rule> rules();
// Null: not an opcode of this version.
const Rule* find_rule(int number);
const Rule* find_rule(std::string_view name);
const Rule& rule_of(Opcode code);

// Why operands do not fit; `operand` is -1 where it is the op itself.
struct TypeFault {
  int operand = -1;
  std::string message;  // "expected f64 (the type of operand 0), found bool"
};

// The type of a plain op's result. For a `branch` only the condition is checked and the type means nothing.
std::variant<Type, TypeFault> result_type(const Rule& rule, std::span<const Type> operands,
                                          const Type& requested);

// Whether the two sides of a branch yield the same types; `operand` is the index of the yield.
std::optional<TypeFault> compare_yields(std::span<const Type> then_types, std::span<const Type> else_types);

}  // namespace eagle::kernel
