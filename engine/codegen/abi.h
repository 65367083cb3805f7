// The one struct between the engine and compiled kernels. Compiled code depends on these offsets; the
// static_asserts keep both sides honest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace eagle::codegen {

inline constexpr std::uint8_t never_cancelled = 0;

// One call runs samples [begin, end) of a launch for up to `max_steps` steps each. Different threads may
// run different ranges of one launch at the same time, each with its own KernelCall.
struct KernelCall {
  // By argument index: the first sample of the first component; null for a param.
  std::byte* const* planes = nullptr;
  // By argument index: bytes from one component to the next.
  const std::int64_t* component_strides = nullptr;
  // By argument index: a param's value as bits of the argument's type, zero-extended.
  const std::uint64_t* params = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t max_steps = 1;
  // By argument index: elements of a table along its one axis, or in all; at least 1. Unused for others.
  const std::int64_t* lengths = nullptr;
  // What sample_index(), n_samples() and step_index() count from: sample 0 of the planes is number
  // `first_sample` of `total_samples`, and the run took `first_step` steps before this call.
  std::int64_t first_sample = 0;
  std::int64_t total_samples = 0;
  std::int64_t first_step = 0;
  // Loops look here every 65,536 trips and leave when it is not 0; the step that they belong to is then not
  // committed. Never null; read atomically.
  const std::uint8_t* cancel = &never_cancelled;
  // Out: samples whose mask this call set, and the last step that any sample of it took (1-based).
  std::int64_t finished = 0;
  std::int64_t steps = 0;
  // Out: gathers whose index had to be clamped, and integer divisions by zero.
  std::int64_t clamped = 0;
  std::int64_t zero_divisions = 0;
  // Out: 1 when a loop saw the cancel flag, so that some step was left and not committed.
  std::int64_t cancelled = 0;
};

static_assert(sizeof(void*) == 8 && std::is_standard_layout_v<KernelCall>);
static_assert(sizeof(KernelCall) == 16 * 8, "compiled code in caches depends on the layout");

using KernelFunction = void (*)(KernelCall*);

}  // namespace eagle::codegen
