// The reference reduction: the meaning of every ReduceOp, as directly as it can be written. For the
// interpreter and for tests; engine/run/reduction is what launches use.
#pragma once

#include <cstdint>
#include <span>

#include "engine/kernel/ir.h"

namespace eagle::kernel {

// Of at least one value, each as zero-extended bits (see Op::bits). Sums of reals in the fixed order that
// docs/manual/accumulation.md gives, without compensation.
std::uint64_t reduce(ReduceOp op, Scalar scalar, std::span<const std::uint64_t> values);

}  // namespace eagle::kernel
