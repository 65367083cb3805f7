// The derivative of every operation on reals, written once for both directions: v times the derivative of the
// result by an operand. Element-wise operations carry tangents forwards and adjoints backwards by the same
// factor.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "engine/kernel/diff/writer.h"
#include "engine/kernel/ir.h"

namespace eagle::kernel::diff {

// In words, for the manual; one row an opcode, in the order of Opcode.
struct RuleText {
  Opcode code;
  std::string_view derivative;
  std::string_view ties;
};
std::span<const RuleText> rule_texts();

// One use of an operation.
struct Use {
  Opcode code = Opcode::constant;
  std::span<const ValueId> operands;
  ValueId result = none;
  bool is_norm = false;  // `sqrt` of a sum of squares
};

struct Term {
  ValueId value = none;  // none: 0 whatever v is
  // The operation chose this operand where this holds, and `value` is 0 where it does not; none: no choice.
  ValueId chosen = none;
};

// v times the derivative by operand `operand`, for the opcodes that `has_factor`. All values are scalars
// of one type.
Term term(Writer& w, const Use& use, std::size_t operand, ValueId v);

// Element-wise operations on reals.
bool has_factor(Opcode code);
// Whether the derivative is 0 everywhere, by every operand.
bool is_flat(Opcode code);
// Whether the rule gives 0 for v = 0 whatever the operands are, infinities and NaN included.
bool keeps_zero(Opcode code);
// Whether the operation chooses one of its operands, so that the others may be anything.
bool chooses(Opcode code);

}  // namespace eagle::kernel::diff
