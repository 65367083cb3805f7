// Which kernels the compiler treats as large.
#pragma once

#include "engine/kernel/ir.h"

namespace eagle::codegen {

// Large kernels are compiled with less optimisation and one copy of the native vector, in a queue of their
// own: what is worth a second there would cost minutes, and smaller ones, done in a tenth of a second, must
// not wait.
inline bool is_large(const kernel::Kernel& kernel) { return kernel::scalar_values(kernel) > 2'000; }

}  // namespace eagle::codegen
