// BoundLaunch: one kernel launch with its code and every address resolved, ready to be called.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/codegen/abi.h"
#include "engine/codegen/compiler.h"
#include "engine/graph/graph.h"
#include "engine/run/built_graph.h"
#include "engine/run/control.h"
#include "engine/run/cpu/kernel_facts.h"
#include "engine/run/kernel_counts.h"

namespace eagle::run {

class BoundLaunch {
public:
  // The launch has passed `graph::read` or `read_launch` with these planes. PRIVATE_ARRAY for memory that
  // this process cannot reach.
  static StatusOr<BoundLaunch> bind(const graph::KernelLaunch& launch, const kernel::Kernel& kernel,
                                    std::shared_ptr<const codegen::Code> code,
                                    std::span<const PlaneMemory> planes);
  // The same, of a kernel whose facts are known.
  static StatusOr<BoundLaunch> bind(const graph::KernelLaunch& launch, const kernel::Kernel& kernel,
                                    const KernelFacts& facts, std::shared_ptr<const codegen::Code> code,
                                    std::span<const PlaneMemory> planes);

  [[nodiscard]] std::int64_t samples() const { return samples_; }
  // What a run of all samples stores past the caches where it may: 0 where addresses do not allow it.
  [[nodiscard]] std::int64_t streamable_bytes() const { return streamable_bytes_; }
  // Calls that begin at a multiple of share_grain do so from now on; whoever runs them fences.
  void stream() { streams_ = streamable_bytes_ > 0; }
  [[nodiscard]] const codegen::Code& code() const { return *code_; }
  [[nodiscard]] const std::shared_ptr<const codegen::Code>& shared_code() const { return code_; }
  // What sample_index() and n_samples() give: sample 0 is number `first` of `total`. After `bind`: 0 of
  // samples().
  void number_samples(std::int64_t first, std::int64_t total) {
    first_sample_ = first;
    total_samples_ = total;
  }
  [[nodiscard]] std::int64_t first_sample() const { return first_sample_; }
  // The first sample of an argument's plane; null for a param, and for every argument of no samples.
  [[nodiscard]] std::byte* plane(std::size_t argument) const { return planes_[argument]; }
  // All of them, and bytes from one component to the next, by argument.
  [[nodiscard]] std::span<std::byte* const> planes() const { return planes_; }
  [[nodiscard]] std::span<const std::int64_t> component_strides() const {
    return std::span(numbers_).first(planes_.size());
  }

  // The bits of a param, which `bind` took from the launch. Not while it runs.
  [[nodiscard]] std::uint64_t param(std::size_t argument) const {
    return static_cast<std::uint64_t>(numbers_[planes_.size() + argument]);
  }
  void set_param(std::size_t argument, std::uint64_t bits) {
    numbers_[planes_.size() + argument] = static_cast<std::int64_t>(bits);
  }

  // What one thread is to do: samples [begin, end), not empty, for up to `max_steps` steps.
  struct Part {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t max_steps = 1;
    std::int64_t first_step = 0;       // steps that the run took before: what step_index() counts from
    const Control* control = nullptr;  // loops inside the kernel look at its flag
    // Instead of the launch's own planes, by argument: a reordered copy of some samples, which are numbered
    // from 0 here and have these numbers in the ensemble. All three or none.
    std::byte* const* planes = nullptr;
    const std::int64_t* component_strides = nullptr;
    const std::int64_t* sample_numbers = nullptr;
  };
  struct Outcome {
    std::int64_t finished = 0;  // samples whose mask this call set
    std::int64_t steps = 0;     // the last step that any sample took
    KernelCounts counts;

    Outcome& operator+=(const Outcome& other) {
      finished += other.finished;
      steps = std::max(steps, other.steps);
      counts += other.counts;
      return *this;
    }
  };
  // On the calling thread, which has a kernel::FloatEnvironment. Allocates nothing. Parts that do not
  // overlap may run at the same time.
  Outcome run(const Part& part) const;

  // For SharedLaunch, which gives a call more than a part has: the call, and its outcome.
  [[nodiscard]] codegen::KernelCall call_for(const Part& part) const;
  Outcome run(codegen::KernelCall& call) const;

private:
  BoundLaunch() = default;

  std::shared_ptr<const codegen::Code> code_;
  std::int64_t samples_ = 0;
  std::int64_t first_sample_ = 0;
  std::int64_t total_samples_ = 0;
  bool one_step_a_call_ = false;
  bool streams_ = false;
  std::int64_t streamable_bytes_ = 0;
  // By argument, as KernelCall wants them: planes; and component strides, then the bits of params, then
  // lengths.
  std::vector<std::byte*> planes_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace eagle::run
