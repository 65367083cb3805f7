#include "engine/run/cpu/program.h"

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>

#include "engine/kernel/float_environment.h"
#include "engine/run/cpu/share.h"

namespace eagle::run {
namespace {

#pragma omp declare reduction(+ : KernelCounts : omp_out += omp_in)

// The guard that an instruction looks at, or null.
const graph::Guard* guard_of(const graph::Instruction& instruction) {
  if (const auto* skip = std::get_if<graph::SkipUnless>(&instruction)) return &skip->guard;
  if (const auto* test = std::get_if<graph::LoopTest>(&instruction)) return &test->guard;
  return nullptr;
}

KernelCounts run_in_place(const BoundLaunch& launch, const Control* control) {
  if (launch.samples() == 0) return {};
  return launch.run({.begin = 0, .end = launch.samples(), .control = control}).counts;
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
    program->launches_.push_back(std::move(bound));
  }
  program->instructions_ = std::move(plan.program);
  program->branches_ = std::move(plan.branches);
  program->loops_ = plan.loops;
  program->team_ = team;
  program->counters_ = std::move(counters);
  EAGLE_RETURN_IF_ERROR(program->bind_guards(planes));
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

KernelCounts CpuProgram::run(const graph::RunKernel& instruction, const Control* control) const {
  const BoundLaunch& launch = launches_[instruction.launch];
  const std::int64_t samples = launch.samples();
  if (team_ == 1 || samples <= inline_samples || omp_in_parallel()) {
    const kernel::FloatEnvironment environment;
    return run_in_place(launch, control);
  }
  KernelCounts counts;
#pragma omp parallel num_threads(team_) reduction(+ : counts)
  {
    const kernel::FloatEnvironment environment;
    // The team may be smaller than asked for.
    const Range share = share_of(samples, omp_get_thread_num(), omp_get_num_threads());
    if (!share.empty())
      counts += launch.run({.begin = share.begin, .end = share.end, .control = control}).counts;
  }
  return counts;
}

KernelCounts CpuProgram::run(const graph::RunBranches& instruction, const Control* control) const {
  const std::span branches = std::span(branches_).subspan(instruction.first, instruction.count);
  const int threads =
      static_cast<int>(std::min<std::size_t>(branches.size(), static_cast<std::size_t>(team_)));
  KernelCounts counts;
#pragma omp parallel num_threads(threads) if (!omp_in_parallel())
  {
    const kernel::FloatEnvironment environment;
#pragma omp for schedule(static, 1) reduction(+ : counts)
    for (std::size_t i = 0; i < branches.size(); ++i) {
      for (const std::uint32_t launch : branches[i]) counts += run_in_place(launches_[launch], control);
    }
  }
  return counts;
}

}  // namespace eagle::run
