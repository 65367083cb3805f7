// CpuProgram: a run plan bound to code and memory, executed by an OpenMP team.
//
// Nothing is allocated or looked up while it runs. It belongs to one caller at a time; the team is that
// of the calling thread (libgomp keeps one per thread that opens regions). It never nests a region: called
// from inside somebody's `omp parallel` it runs in place on the calling thread. The bits do not depend on
// the team.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/codegen/compiler.h"
#include "engine/graph/run_plan.h"
#include "engine/run/built_graph.h"
#include "engine/run/counters.h"
#include "engine/run/cpu/batch.h"
#include "engine/run/cpu/bound_launch.h"
#include "engine/run/cpu/bound_reduce.h"
#include "engine/run/cpu/copy.h"
#include "engine/run/cpu/guard.h"
#include "engine/run/cpu/share.h"
#include "engine/run/cpu/shared_launch.h"

namespace eagle::run {

// A launch of at most this many samples runs on the calling thread: opening a region costs a few
// microseconds, about what a light kernel takes for so many samples.
constexpr std::int64_t inline_samples = 4096;

class CpuProgram {
public:
  // `code` has one entry a kernel of the plan; those of kernels that no launch uses may be null.
  // PRIVATE_ARRAY for memory that this process cannot reach.
  static StatusOr<std::unique_ptr<CpuProgram>> bind(
      graph::RunPlan plan, std::span<const std::shared_ptr<const codegen::Code>> code,
      std::span<const PlaneMemory> planes, int team, std::shared_ptr<Counters> counters);

  [[nodiscard]] const std::vector<graph::Instruction>& instructions() const { return instructions_; }
  [[nodiscard]] std::uint32_t loops() const { return loops_; }
  // The kernel of each launch, an index into the plan's kernels.
  [[nodiscard]] const std::vector<std::uint32_t>& kernels() const { return kernels_; }
  // The guard of the instruction at `position`, a SkipUnless or LoopTest.
  [[nodiscard]] bool holds(std::uint32_t position) const { return guards_[position]->holds(); }

  // Tells the counter of a loop, if it has one, how many bodies have run.
  void tell(std::uint32_t loop, std::int64_t bodies) const {
    if (loop_counters_[loop]) loop_counters_[loop]->store(bodies);
  }

  // `control` may be null; loops inside kernels look at its flag.
  // Runs the launch, or the next batch of it: where `progress` is not 0 afterwards, something is left. A
  // launch whose samples make something together runs in one piece.
  KernelCounts run(const graph::RunKernel& instruction, const Control* control, Progress& progress) const;
  KernelCounts run(const graph::RunBranches& instruction, const Control* control) const;
  void run(const graph::RunReduce& instruction) { reductions_[instruction.reduce].run(); }
  void run(const graph::RunCopy& instruction) const { copies_[instruction.copy].run(team_); }

  // The bits of a Param: of an argument of a launch of the plan. Not while anything runs.
  [[nodiscard]] std::uint64_t param(std::uint32_t launch, std::uint32_t argument) const {
    return launches_[launch].param(argument);
  }
  void set_param(std::uint32_t launch, std::uint32_t argument, std::uint64_t bits) {
    launches_[launch].set_param(argument, bits);
  }

  [[nodiscard]] Counters& counters() const { return *counters_; }

private:
  CpuProgram() = default;
  Status bind_guards(std::span<const PlaneMemory> planes);
  Status bind_counters(std::span<const std::optional<plane::View>> counters,
                       std::span<const PlaneMemory> planes);
  KernelCounts run_in_place(std::uint32_t launch, int thread, const Control* control) const;
  KernelCounts run_share(const BoundLaunch& launch, Range share, const Control* control) const;
  KernelCounts run_batch(const BoundLaunch& launch, Range of_shares, const Control* control) const;

  std::vector<graph::Instruction> instructions_;
  std::vector<std::vector<std::uint32_t>> branches_;
  std::uint32_t loops_ = 0;
  std::vector<std::optional<BoundCounter>> loop_counters_;  // by loop
  std::vector<BoundLaunch> launches_;
  std::vector<std::uint32_t> kernels_;               // by launch
  mutable std::vector<Batches> batches_;             // by launch
  std::vector<std::optional<SharedLaunch>> shared_;  // by launch
  mutable std::vector<ThreadSpace> spaces_;          // one a thread, where a launch shares
  std::vector<BoundReduce> reductions_;
  std::vector<BoundCopy> copies_;
  std::vector<std::optional<BoundGuard>> guards_;  // by instruction
  int team_ = 1;
  std::shared_ptr<Counters> counters_;
};

}  // namespace eagle::run
