// What each element-wise operation does to one component, on bits (zero-extended, as in Op::bits). The
// interpreter's arithmetic.
#pragma once

#include <cstdint>

#include "engine/kernel/ir.h"

namespace eagle::kernel {

// `code` is arithmetic, an integer operation, a comparison, logic, a conversion or a math function; `b` and `c` are
// ignored where it has fewer operands. `from` is the operands' type and `to` the result's. The floating-point environment is to
// be the kernels' one (engine/kernel/float_environment.h).
std::uint64_t apply(Opcode code, Scalar from, Scalar to, std::uint64_t a, std::uint64_t b,
                    std::uint64_t c = 0);

}  // namespace eagle::kernel
