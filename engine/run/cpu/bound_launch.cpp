#include "engine/run/cpu/bound_launch.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/codegen/streaming.h"
#include "engine/kernel/names.h"
#include "engine/plane/overlap.h"
#include "engine/run/cpu/share.h"

namespace eagle::run {
namespace {

// Whether two arguments are the same bytes and one of them is written (an update in place under two names).
// Compiled code loads each argument once a call, so a step would not see what the one before it stored under
// the other name.
bool written_under_two_names(const graph::KernelLaunch& launch, const std::vector<kernel::Access>& accesses) {
  // Most launches have each argument on a plane of its own, and need no look at the kernel.
  std::vector<std::uint32_t> planes;
  for (const graph::Bound& argument : launch.arguments) {
    if (argument.view) planes.push_back(argument.view->plane);
  }
  std::sort(planes.begin(), planes.end());
  if (std::adjacent_find(planes.begin(), planes.end()) == planes.end()) return false;
  for (std::size_t out = 0; out < accesses.size(); ++out) {
    if (!accesses[out].written || !launch.arguments[out].view) continue;
    for (std::size_t other = 0; other < accesses.size(); ++other) {
      if (other == out || !(accesses[other].read || accesses[other].written)) continue;
      if (!launch.arguments[other].view) continue;
      if (plane::overlap(*launch.arguments[other].view, *launch.arguments[out].view).overlaps) return true;
    }
  }
  return false;
}

std::int64_t bytes_to_stream(const BoundLaunch& bound, const kernel::Kernel& kernel,
                             const KernelFacts& facts) {
  if (!facts.may_stream) return 0;
  std::int64_t bytes = 0;
  for (std::size_t a = 0; a < facts.accesses.size(); ++a) {
    const kernel::Argument& argument = kernel.arguments[a];
    if (!codegen::is_streamed(argument, facts.accesses[a])) continue;
    const auto address = reinterpret_cast<std::uintptr_t>(bound.plane(a));
    const std::int64_t components = argument.type.components();
    if (address % codegen::streaming_alignment != 0) return 0;
    if (components > 1 && bound.component_strides()[a] % codegen::streaming_alignment != 0) return 0;
    bytes += bound.samples() * components * kernel::bytes_of(argument.type.scalar);
  }
  return bytes;
}

}  // namespace

StatusOr<BoundLaunch> BoundLaunch::bind(const graph::KernelLaunch& launch, const kernel::Kernel& kernel,
                                        std::shared_ptr<const codegen::Code> code,
                                        std::span<const PlaneMemory> planes) {
  return bind(launch, kernel, KernelFacts::of(kernel), std::move(code), planes);
}

StatusOr<BoundLaunch> BoundLaunch::bind(const graph::KernelLaunch& launch, const kernel::Kernel& kernel,
                                        const KernelFacts& facts, std::shared_ptr<const codegen::Code> code,
                                        std::span<const PlaneMemory> planes) {
  const std::size_t arguments = launch.arguments.size();
  BoundLaunch bound;
  bound.code_ = std::move(code);
  bound.samples_ = launch.samples;
  bound.total_samples_ = launch.samples;
  bound.planes_.resize(arguments);
  bound.numbers_.resize(3 * arguments);
  for (std::size_t i = 0; i < arguments; ++i) {
    const graph::Bound& argument = launch.arguments[i];
    std::byte* address = nullptr;
    // A launch of no samples is never called, and its planes may have no memory at all.
    if (argument.view && launch.samples > 0) {
      std::byte* data = planes[argument.view->plane].data;
      if (data == nullptr) {
        return Status(Reason::private_array,
                      "kernel " + kernel::quote_name(kernel.name) + ": argument " +
                          kernel::quote_name(kernel.arguments[i].name) + " (plane " +
                          std::to_string(argument.view->plane) +
                          ") lies in memory that only the client can reach; make the array with the "
                          "session, or run in process");
      }
      address = data + argument.view->offset;
    }
    bound.planes_[i] = address;
    bound.numbers_[i] = argument.layout.component_stride;
    bound.set_param(i, argument.bits);
    bound.numbers_[2 * arguments + i] = argument.layout.samples;
  }
  bound.streamable_bytes_ = bytes_to_stream(bound, kernel, facts);
  bound.one_step_a_call_ = written_under_two_names(launch, facts.accesses);
  return bound;
}

BoundLaunch::Outcome BoundLaunch::run(const Part& part) const {
  if (!one_step_a_call_) {
    codegen::KernelCall call = call_for(part);
    return run(call);
  }
  Outcome total;
  Part one = part;
  one.max_steps = 1;
  while (total.steps < part.max_steps) {
    one.first_step = part.first_step + total.steps;
    codegen::KernelCall call = call_for(one);
    const Outcome step = run(call);
    total.counts += step.counts;
    if (step.steps == 0) break;  // nobody is left to take one
    total.finished += step.finished;
    ++total.steps;
  }
  return total;
}

codegen::KernelCall BoundLaunch::call_for(const Part& part) const {
  static_assert(std::atomic<bool>::is_always_lock_free && sizeof(std::atomic<bool>) == 1);
  codegen::KernelCall call;
  call.planes = part.planes != nullptr ? part.planes : planes_.data();
  call.component_strides = part.planes != nullptr ? part.component_strides : numbers_.data();
  call.sample_numbers = part.sample_numbers;
  call.params = reinterpret_cast<const std::uint64_t*>(numbers_.data() + planes_.size());
  call.lengths = numbers_.data() + 2 * planes_.size();
  call.begin = part.begin;
  call.end = part.end;
  call.max_steps = part.max_steps;
  call.first_sample = first_sample_;
  call.total_samples = total_samples_;
  call.first_step = part.first_step;
  call.streaming = streams_ && part.planes == nullptr && part.begin % share_grain == 0 ? 1 : 0;
  if (part.control != nullptr) call.cancel = reinterpret_cast<const std::uint8_t*>(&part.control->flag());
  return call;
}

#if defined(__clang__)
// UBSan reads a signature before each function that is called through a pointer. Compiled kernels have none.
__attribute__((no_sanitize("function")))
#endif
BoundLaunch::Outcome
BoundLaunch::run(codegen::KernelCall& call) const {
  code_->function()(&call);
  return {call.finished, call.steps, {call.clamped, call.zero_divisions, call.dropped, call.cancelled}};
}

}  // namespace eagle::run
