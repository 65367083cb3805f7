// The one struct between the engine and compiled kernels. Compiled code depends on these offsets; the
// static_asserts keep both sides honest.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eagle::codegen {

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
  // Out: samples whose mask this call set, and the last step that any sample of it took (1-based).
  std::int64_t finished = 0;
  std::int64_t steps = 0;
};

static_assert(offsetof(KernelCall, planes) == 0);
static_assert(offsetof(KernelCall, component_strides) == 8);
static_assert(offsetof(KernelCall, params) == 16);
static_assert(offsetof(KernelCall, begin) == 24);
static_assert(offsetof(KernelCall, end) == 32);
static_assert(offsetof(KernelCall, max_steps) == 40);
static_assert(offsetof(KernelCall, finished) == 48);
static_assert(offsetof(KernelCall, steps) == 56);
static_assert(sizeof(KernelCall) == 64);

using KernelFunction = void (*)(KernelCall*);

}  // namespace eagle::codegen
