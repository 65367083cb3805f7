// The math functions on one component, as bits (zero-extended, as in Op::bits).
#pragma once

#include <cstdint>

#include "engine/kernel/ir.h"

namespace eagle::kernel {

// Whether `code` is one of engine/kernel/math/functions.h.
bool is_math(Opcode code);

// `scalar` is the operands' type, f64 or f32; operands that the function does not have are ignored. The
// result is of the same type, or 0 or 1 for a question. The floating-point environment is to be the kernels'
// one.
std::uint64_t apply_math(Opcode code, Scalar scalar, std::uint64_t a, std::uint64_t b, std::uint64_t c);

}  // namespace eagle::kernel
