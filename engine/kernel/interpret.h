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

// One argument's plane: component-major bytes; component c of sample i is at
// `data + c * component_stride + i * sizeof(scalar)`. Params: `data` points at the one value.
struct InterpreterPlane {
  std::byte* data = nullptr;
  std::int64_t component_stride = 0;
  std::int64_t length = 0;  // tables and accumulators: elements, at least 1
};

// What sample_index(), n_samples() and step_index() count from, as in codegen::KernelCall.
struct InterpreterPosition {
  std::int64_t first_sample = 0;
  std::int64_t total_samples = 0;
  std::int64_t first_step = 0;
};

// Runs the body once, as the first sample's first step at `position`. `entry` has one element per entry value
// (see Kernel::body), the result one per committed argument. `planes` has one element for each argument, of
// which only tables and accumulators are looked at; it may be empty for a kernel without them. Subnormals are
// kept whatever the caller's MXCSR says.
std::vector<Bits> interpret(const Kernel& kernel, std::span<const Bits> entry,
                            std::span<const InterpreterPlane> planes = {},
                            const InterpreterPosition& position = {});

struct InterpreterResult {
  std::int64_t finished = 0;  // samples whose mask this call set
  std::int64_t steps = 0;     // the last step that any sample took
  // Gathers of which an index had to be clamped (one each, whatever the number of axes), and components of
  // floor_div and modulo whose divisor was 0; in samples and branches that ran.
  std::int64_t clamped = 0;
  std::int64_t zero_divisions = 0;
  std::int64_t dropped = 0;  // accum_adds outside of their accumulator (one each)
};

// The whole contract of a launch, sample by sample: skip samples whose mask is set, take up to
// `max_steps` steps each, commit outputs, then the mask. Where samples share (Kernel::shares) all of them
// take a step before any takes the next one, and a reduction holds what the last step gave.
InterpreterResult interpret_launch(const Kernel& kernel, std::span<const InterpreterPlane> planes,
                                   std::int64_t samples, std::int64_t max_steps,
                                   const InterpreterPosition& position = {});

}  // namespace eagle::kernel
