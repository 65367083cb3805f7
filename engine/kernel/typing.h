// What each opcode takes and gives. The one table that the verifier, the builder, the text form and the
// generator of random kernels share; a new plain operation is one row here and one case in the interpreter.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/kernel/ir.h"

namespace eagle::kernel {

// The type rule of an opcode. T is any type, S one of rank 0.
enum class Typing : std::uint8_t {
  constant,     // () -> the stated type, of rank 0
  position,     // () -> i64
  numbers,      // (T, ...) -> T, real or integer
  reals,        // (T, ...) -> T, real
  integers,     // (T, ...) -> T, integer
  question,     // (S) -> bool, real
  equality,     // (S, S) -> bool
  order,        // (S, S) -> bool, real or integer
  logic,        // (bool, ...) -> bool
  choice,       // (bool, T, T) -> T
  conversion,   // (T) -> the stated type, with T's extents
  branch,       // (bool) -> what its two regions yield
  loop,         // (T, U, ...) -> (T, U, ...), what its regions carry
  selection,    // (i64) -> what its regions yield
  lookup,       // (i64, ...), one for each axis of the table -> the table's element type
  composition,  // (S, S, ...) -> the stated type of as many S, of rank 1 or 2
  component,    // (T of rank 1 or 2) -> its scalar
  addition,     // (the accumulator's element type, i64, ...), an index an axis -> nothing
  extent,       // () -> i64, of the table or accumulator that is named
  primitive,    // (T, U, ...) -> what its first region yields
  random,       // (i64, i64) -> i64[4]
};

inline constexpr int any_number = -1;

struct Rule {
  Opcode code;
  std::string_view name;  // as in the text form
  int operands;           // or any_number: see `result_type`
  Typing typing;

  // Whether the op states its result type instead of having it inferred.
  [[nodiscard]] bool states_type() const {
    return typing == Typing::constant || typing == Typing::conversion || typing == Typing::composition;
  }
  // How many regions an op of this rule may have. One that has regions gives what they yield or carry,
  // not one result.
  [[nodiscard]] int least_regions() const {
    return typing == Typing::branch || typing == Typing::loop ? 2
           : typing == Typing::selection                      ? 1
           : typing == Typing::primitive                      ? 3
                                                              : 0;
  }
  [[nodiscard]] bool has_regions() const { return least_regions() > 0; }
  // Whether the op names a table or an accumulator.
  [[nodiscard]] bool names_argument() const {
    return typing == Typing::lookup || typing == Typing::addition || typing == Typing::extent;
  }
  // Whether an op without regions gives a value.
  [[nodiscard]] bool has_result() const { return typing != Typing::addition; }
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

// What an op says beside its operands, as far as its type depends on it.
struct Stated {
  Type type;                        // where states_type()
  const Argument* table = nullptr;  // where names_argument(); never null there
  std::uint32_t component = 0;      // `component`
};

// The type of a plain op's result. For an op with regions only the operands are checked and the type means
// nothing, as for an op without a result.
// What the regions of a primitive have as arguments, and what those beyond the first yield. `results` matters
// to the last one alone.
struct PrimitiveTypes {
  std::vector<Type> arguments;
  std::vector<Type> yields;
};
PrimitiveTypes primitive_types(std::size_t region, std::span<const Type> operands,
                               std::span<const Type> results);

std::variant<Type, TypeFault> result_type(const Rule& rule, std::span<const Type> operands,
                                          const Stated& stated);

// Whether a region yields these types; `operand` is the index of the yield. `as` says in an error where the
// expected ones come from: "the then side".
std::optional<TypeFault> compare_yields(std::span<const Type> expected, std::span<const Type> found,
                                        std::string_view as);

}  // namespace eagle::kernel
