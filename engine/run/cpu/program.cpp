#include "engine/run/cpu/program.h"

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "engine/base/clock.h"
#include "engine/kernel/float_environment.h"
#include "engine/run/cpu/branches.h"
#include "engine/run/cpu/share.h"

namespace eagle::run {
namespace {

using Clock = std::chrono::steady_clock;

#pragma omp declare reduction(+ : KernelCounts : omp_out += omp_in)

// The guard that an instruction looks at, or null.
const graph::Guard* guard_of(const graph::Instruction& instruction) {
  if (const auto* skip = std::get_if<graph::SkipUnless>(&instruction)) return &skip->guard;
  if (const auto* test = std::get_if<graph::LoopTest>(&instruction)) return &test->guard;
  return nullptr;
}

}  // namespace

StatusOr<std::unique_ptr<CpuProgram>> CpuProgram::bind(
    graph::RunPlan plan, std::span<const std::shared_ptr<const codegen::Code>> code,
    std::span<const PlaneMemory> planes, int team, std::shared_ptr<Counters> counters) {
  std::unique_ptr<CpuProgram> program(new CpuProgram);
  program->launches_.reserve(plan.launches.size());
  for (const graph::KernelLaunch& launch : plan.launches) {
    EAGLE_ASSIGN_OR_RETURN(BoundLaunch bound, BoundLaunch::bind(launch, *plan.kernels[launch.kernel],
                                                                code[launch.kernel], planes));
    program->shared_.push_back(SharedLaunch::of(launch, plan.kernels[launch.kernel], bound));
    program->launches_.push_back(std::move(bound));
    program->kernels_.push_back(launch.kernel);
  }
  program->batches_.resize(program->launches_.size());
  for (const graph::Copy& copy : plan.copies) {
    EAGLE_ASSIGN_OR_RETURN(BoundCopy bound, BoundCopy::bind(copy, planes));
    program->copies_.push_back(std::move(bound));
  }
  for (const graph::Reduce& reduce : plan.reductions) {
    EAGLE_ASSIGN_OR_RETURN(BoundReduce bound, BoundReduce::bind(reduce, planes, team));
    program->reductions_.push_back(std::move(bound));
  }
  program->instructions_ = std::move(plan.program);
  program->branches_ = std::move(plan.branches);
  program->loops_ = plan.loops;
  program->team_ = team;
  program->counters_ = std::move(counters);
  ThreadSpace::Needs needs;
  for (const std::optional<SharedLaunch>& shared : program->shared_) {
    if (shared) needs.cover(shared->needs(team));
  }
  program->spaces_ = ThreadSpace::for_team(team, needs);
  EAGLE_RETURN_IF_ERROR(program->bind_guards(planes));
  EAGLE_RETURN_IF_ERROR(program->bind_counters(plan.counters, planes));
  return program;
}

Status CpuProgram::bind_guards(std::span<const PlaneMemory> planes) {
  guards_.resize(instructions_.size());
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    if (const graph::Guard* guard = guard_of(instructions_[i])) {
      EAGLE_ASSIGN_OR_RETURN(guards_[i], BoundGuard::bind(*guard, planes));
    }
  }
  return {};
}

Status CpuProgram::bind_counters(std::span<const std::optional<plane::View>> counters,
                                 std::span<const PlaneMemory> planes) {
  for (const std::optional<plane::View>& counter : counters) {
    std::optional<BoundCounter>& bound = loop_counters_.emplace_back();
    if (!counter) continue;
    EAGLE_ASSIGN_OR_RETURN(bound, BoundCounter::bind(*counter, planes));
  }
  return {};
}

// By the calling thread, number `thread` of the team.
KernelCounts CpuProgram::run_in_place(std::uint32_t launch, int thread, const Control* control) const {
  const BoundLaunch& bound = launches_[launch];
  if (shared_[launch]) {
    const std::span space = std::span(spaces_).subspan(static_cast<std::size_t>(thread), 1);
    return shared_[launch]->step(bound, space, 0, control).counts;
  }
  if (bound.samples() == 0) return {};
  return bound.run({.begin = 0, .end = bound.samples(), .control = control}).counts;
}

KernelCounts CpuProgram::run(const graph::RunKernel& instruction, const Control* control,
                             Progress& progress) const {
  const BoundLaunch& launch = launches_[instruction.launch];
  const std::int64_t samples = launch.samples();
  const bool alone = team_ == 1 || samples <= inline_samples || omp_in_parallel();
  if (samples == 0 || shared_[instruction.launch]) {
    if (!alone) return shared_[instruction.launch]->step(launch, spaces_, 0, control).counts;
    const kernel::FloatEnvironment environment;
    return run_in_place(instruction.launch, 0, control);
  }
  // As long as the longest share.
  const std::int64_t share = alone ? samples : share_of(samples, 0, team_).end;
  Batches& batches = batches_[instruction.launch];
  const Range batch{progress.done, std::min(progress.done + batches.next(), share)};
  const bool watch = batches.watch(share);
  const Clock::time_point began = watch ? Clock::now() : Clock::time_point();
  const KernelCounts counts = alone ? run_share(launch, batch, control) : run_batch(launch, batch, control);
  if (watch) batches.took(batch.end - batch.begin, seconds_since(began));
  progress.done = batch.end == share ? 0 : batch.end;
  return counts;
}

KernelCounts CpuProgram::run_share(const BoundLaunch& launch, Range share, const Control* control) const {
  const kernel::FloatEnvironment environment;
  return launch.run({.begin = share.begin, .end = share.end, .control = control}).counts;
}

// These samples of each thread's share. The team may be smaller than asked for: then some thread has several.
KernelCounts CpuProgram::run_batch(const BoundLaunch& launch, Range of_shares, const Control* control) const {
  KernelCounts counts;
#pragma omp parallel num_threads(team_) reduction(+ : counts)
  {
    for (int owner = omp_get_thread_num(); owner < team_; owner += omp_get_num_threads()) {
      const Range all = share_of(launch.samples(), owner, team_);
      const Range share{all.begin + of_shares.begin, std::min(all.begin + of_shares.end, all.end)};
      if (!share.empty()) counts += run_share(launch, share, control);
    }
  }
  return counts;
}

KernelCounts CpuProgram::run(const graph::RunBranches& instruction, const Control* control) const {
  const std::span branches = std::span(branches_).subspan(instruction.first, instruction.count);
  KernelCounts counts;
  std::mutex mutex;
  run_branches(branches.size(), team_, [&](std::size_t branch) {
    const kernel::FloatEnvironment environment;
    KernelCounts own;
    for (const std::uint32_t launch : branches[branch])
      own += run_in_place(launch, omp_get_thread_num(), control);
    const std::scoped_lock lock(mutex);
    counts += own;
  });
  return counts;
}

}  // namespace eagle::run
