// Operands for which functions are tested.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/kernel/ir.h"
#include "engine/kernel/random_kernel.h"
#include "tests/accuracy/reference.h"

namespace eagle::accuracy {

// Zeros, infinities, NaN, ends of the range, whole numbers, the places where algorithms change over, each
// with its neighbours; in all combinations where a function has several operands.
std::vector<Operands> special_operands(int count);
// Numbers that are known to be hard: near multiples of pi/2, and those of hard.txt.
std::vector<Operands> known_operands(kernel::Opcode code, kernel::Scalar scalar);
// Some from the whole range, and most from where the function does something.
std::vector<Operands> random_operands(kernel::Opcode code, std::size_t count, kernel::Random& random);
// Rounds every operand to single precision. (GCC 12 vectorises the plain loop wrongly: it leaves some as they
// are.)
void round_to_singles(std::vector<Operands>& operands);
// Around one, as near as 2^reach units in the last place of the format.
Operands near(const Operands& operands, int reach, const Format& format, kernel::Random& random);

}  // namespace eagle::accuracy
