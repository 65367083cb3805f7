// The reference interpreter: one sample at a time, one op at a time, obvious. Compiled code must give
// its bits. For tests and for explaining; never on a launch path.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/kernel/ir.h"

namespace eagle::kernel {

// One value's components as bits, each zero-extended (like Op::bits).
using Bits = std::vector<std::uint64_t>;

// Runs the body once. `entry` has one element per entry value (see Kernel::body), the result one per
// committed argument. Subnormals are kept whatever the caller's MXCSR says.
std::vector<Bits> interpret(const Kernel& kernel, std::span<const Bits> entry);

// One argument's plane for `interpret_launch`: component-major bytes; component c of sample i is at
// `data + c * component_stride + i * sizeof(scalar)`. Params: `data` points at the one value.
struct InterpreterPlane {
  std::byte* data = nullptr;
  std::int64_t component_stride = 0;
};

struct InterpreterResult {
  std::int64_t finished = 0;  // samples whose mask this call set
  std::int64_t steps = 0;     // the last step that any sample took
};

// The whole contract of a launch, sample by sample: skip samples whose mask is set, take up to
// `max_steps` steps each, commit outputs, then the mask.
InterpreterResult interpret_launch(const Kernel& kernel, std::span<const InterpreterPlane> planes,
                                   std::int64_t samples, std::int64_t max_steps);

}  // namespace eagle::kernel
