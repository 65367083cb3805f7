// The one struct between the engine and compiled kernels. Compiled code depends on these offsets; the
// static_asserts keep both sides honest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace eagle::codegen {

// What compiled code and the engine agree on: raised with every change of this struct or of what its members
// mean, and of what the code of one kernel computes. Code of another number is not run.
inline constexpr std::uint32_t abi_version = 2;

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
  // The numbers that sample_index() gives for samples begin..end-1 of the planes (index 0 is sample 0), where
  // the planes are a reordered copy; null: consecutive, from `first_sample`.
  const std::int64_t* sample_numbers = nullptr;
  // Out: samples whose mask this call set, and the last step that any sample of it took (1-based).
  std::int64_t finished = 0;
  std::int64_t steps = 0;
  // Out: gathers whose index had to be clamped, and integer divisions by zero.
  std::int64_t clamped = 0;
  std::int64_t zero_divisions = 0;
  // Out: 1 when a loop saw the cancel flag, so that some step was left and not committed.
  std::int64_t cancelled = 0;

  // A kernel with accumulators or reductions (Kernel::shares) takes one step a call. `planes` then has for a
  // reduction where the values of the samples go: end - begin elements, of which those of samples that do not
  // run are left as they are.
  //
  // What accum_add adds is noted, by whom kernel::Additions says:
  // - by sample: `notes` has two addresses an op, in program order. Element `sample - begin` of the first is
  // an i64,
  //   the element of the accumulator or -1 for none (an op that a sample does not reach leaves it as it is);
  //   that of the second is the value, its components `notes_capacity` elements apart.
  // - else one after the other: `notes` is an array of `notes_capacity` words of 64 bits, of which
  // `notes_used` are
  //   in use. A note is the op's number, the element, and a word a component. Code that needs more room calls
  //   `flush`, which makes it.
  void* notes = nullptr;
  std::int64_t notes_capacity = 0;
  std::int64_t notes_used = 0;
  void (*flush)(KernelCall*) = nullptr;
  // Out: accum_adds outside of their accumulator.
  std::int64_t dropped = 0;

  // Not 0: stores go past the caches where they can, and the caller fences them (streaming.h).
  std::int64_t streaming = 0;
};

static_assert(sizeof(void*) == 8 && std::is_standard_layout_v<KernelCall>);
static_assert(sizeof(KernelCall) == 23 * 8, "compiled code in caches depends on the layout");

using KernelFunction = void (*)(KernelCall*);

}  // namespace eagle::codegen
