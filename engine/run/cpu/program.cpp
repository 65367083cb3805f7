#include "engine/run/cpu/program.h"
#include "engine/run/cpu/team.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

namespace eagle::run {
namespace {

// The guard that an instruction looks at, or null.
const graph::Guard* guard_of(const graph::Instruction& instruction) {
  if (const auto* skip = std::get_if<graph::SkipUnless>(&instruction)) return &skip->conditional->guard;
  if (const auto* test = std::get_if<graph::LoopTest>(&instruction)) return &test->conditional->guard;
  return nullptr;
}

// A function as one launch: its planes and numbers are those of the launches that they came from.
graph::KernelLaunch whole(const graph::RunPlan& plan, const graph::SampleFunction& function,
                          const kernel::Fused& fused) {
  graph::KernelLaunch launch;
  launch.samples = plan.launches[function.launches.first]->samples;
  for (const kernel::Fused::Origin& origin : fused.origins)
    launch.arguments.push_back(
        plan.launches[function.launches.first + origin.part]->arguments[origin.argument]);
  return launch;
}

}  // namespace

StatusOr<std::unique_ptr<CpuProgram>> CpuProgram::bind(
    graph::RunPlan plan, FusedPlan fused, std::span<const std::shared_ptr<const codegen::Code>> code,
    std::span<const PlaneMemory> planes, int team, const GroupRules& rules, double piece_s,
    std::shared_ptr<Counters> counters) {
  std::unique_ptr<CpuProgram> program(new CpuProgram);
  EAGLE_RETURN_IF_ERROR(program->bind_groups(plan, fused, code, planes, rules));
  for (const auto& copy : plan.copies) {
    EAGLE_ASSIGN_OR_RETURN(BoundCopy bound, BoundCopy::bind(*copy, planes));
    program->copies_.push_back(std::move(bound));
  }
  for (const auto& reduce : plan.reductions) {
    EAGLE_ASSIGN_OR_RETURN(BoundReduce bound, BoundReduce::bind(*reduce, planes, team));
    program->reductions_.push_back(std::move(bound));
  }
  program->program_ = std::move(fused.grouped.program);
  program->branches_ = std::move(fused.grouped.branches);
  program->fused_ = std::move(fused.code);
  program->loops_ = plan.loops;
  program->team_ = team;
  program->piece_s_ = piece_s;
  program->counters_ = std::move(counters);
  ThreadSpace::Needs needs;
  for (const BoundGroup& group : program->groups_) {
    if (group.shared()) needs.cover(group.shared()->needs(team));
  }
  program->spaces_ = ThreadSpace::for_team(team, needs);
  if (!program->reductions_.empty()) program->reduce_shares_.resize(static_cast<std::size_t>(team));
  program->places_.resize(program->most_places());
  program->shared_instructions_ =
      std::count_if(program->instructions().begin(), program->instructions().end(),
                    [&](const graph::Instruction& one) { return program->threads(one) > 1; });
  program->host_times_ = std::vector<TickSum>(program->instructions().size());
  program->reduce_times_ = std::vector<TickSum>(program->reductions_.size());
  program->copy_times_ = std::vector<TickSum>(program->copies_.size());
  EAGLE_RETURN_IF_ERROR(program->bind_guards(planes));
  EAGLE_RETURN_IF_ERROR(program->bind_counters(plan.counters, planes));
  return program;
}

Status CpuProgram::bind_guards(std::span<const PlaneMemory> planes) {
  guards_.resize(instructions().size());
  for (std::size_t i = 0; i < instructions().size(); ++i) {
    if (const graph::Guard* guard = guard_of(instructions()[i])) {
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

Status CpuProgram::bind_groups(const graph::RunPlan& plan, const FusedPlan& fused,
                               std::span<const std::shared_ptr<const codegen::Code>> code,
                               std::span<const PlaneMemory> planes, const GroupRules& rules) {
  kernels_.reserve(plan.launches.size());
  for (const graph::KernelLaunch* const launch : plan.launches) kernels_.push_back(launch->kernel);
  homes_.resize(plan.launches.size());
  groups_.reserve(fused.grouped.groups.size());
  launches_.reserve(fused.grouped.groups.size());
  std::vector<KernelFacts> facts;  // by kernel of the plan
  for (const auto& kernel : plan.kernels) facts.push_back(KernelFacts::of(*kernel));
  for (std::uint32_t g = 0; g < fused.grouped.groups.size(); ++g) {
    const graph::SampleGroup& group = fused.grouped.groups[g];
    std::vector<BoundGroup::Function> functions;
    functions.reserve(group.functions.size());
    std::vector<graph::Launches>& launches = launches_.emplace_back();
    launches.reserve(group.functions.size());
    std::optional<SharedLaunch> shared;
    for (std::uint32_t f = 0; f < group.functions.size(); ++f) {
      const graph::SampleFunction& function = group.functions[f];
      launches.push_back(function.launches);
      for (std::uint32_t i = 0; i < function.launches.count; ++i)
        homes_[function.launches.first + i] = {g, f};
      if (const auto& made = fused.code[g][f]) {
        const KernelFacts of_it = KernelFacts::of(made->fused.kernel);
        EAGLE_ASSIGN_OR_RETURN(BoundLaunch bound,
                               BoundLaunch::bind(whole(plan, function, made->fused), made->fused.kernel,
                                                 of_it, made->code, planes));
        functions.push_back({std::move(bound), of_it.cost});
        continue;
      }
      const graph::KernelLaunch& launch = *plan.launches[function.launches.first];
      const auto& kernel = plan.kernels[launch.kernel];
      EAGLE_ASSIGN_OR_RETURN(BoundLaunch bound, BoundLaunch::bind(launch, *kernel, facts[launch.kernel],
                                                                  code[launch.kernel], planes));
      shared = SharedLaunch::of(launch, kernel, bound);
      functions.push_back({std::move(bound), facts[launch.kernel].cost});
    }
    groups_.emplace_back(std::move(functions), std::move(shared), rules);
  }
  return {};
}

std::vector<CompiledFunction> CpuProgram::functions(const graph::Graph& graph) const {
  const std::vector<ExecutedNode> names = launch_names(graph);
  std::vector<CompiledFunction> all;
  std::size_t nodes = 0;
  std::size_t bytes = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t f = 0; f < launches_[g].size(); ++f) {
      const graph::Launches& launches = launches_[g][f];
      const std::span these = std::span(names).subspan(launches.first, launches.count);
      nodes += these.size();
      for (const ExecutedNode& node : these) bytes += node.label.size();
      if (nodes > most_reported_nodes || bytes > most_reported_bytes) return all;
      CompiledFunction function;
      function.nodes.assign(these.begin(), these.end());
      function.code = groups_[g].function(f).shared_code();
      const auto& fused = fused_[g][f];
      function.kernel = fused ? std::shared_ptr<const kernel::Kernel>(fused, &fused->fused.kernel)
                              : graph.kernels[kernels_[launches.first]];
      all.push_back(std::move(function));
    }
  }
  return all;
}

void CpuProgram::ends_measured_replay() {
  if (!measured_replays_.ends()) return;
  for (const BoundGroup& group : groups_) {
    for (TickSum& sum : group.times()) sum.halve();
  }
  for (auto* const sums : {&host_times_, &reduce_times_, &copy_times_}) {
    for (TickSum& sum : *sums) sum.halve();
  }
}

namespace {

// The nodes of each kind, bodies included, in the order in which `graph::lower` numbers them.
struct NodesByKind {
  std::vector<const graph::Node*> launches, reductions, copies, host_calls;

  void add(const std::vector<graph::Branch>& branches) {
    for (const graph::Branch& branch : branches) {
      for (const graph::Node& node : branch.nodes) add(node);
    }
  }

private:
  void add(const graph::Node& node) {
    if (graph::as<graph::KernelLaunch>(node) != nullptr) launches.push_back(&node);
    if (graph::as<graph::Reduce>(node) != nullptr) reductions.push_back(&node);
    if (graph::as<graph::Copy>(node) != nullptr) copies.push_back(&node);
    if (graph::as<graph::HostNode>(node) != nullptr) host_calls.push_back(&node);
    if (const auto* const group = graph::as<graph::Group>(node)) add(group->branches);
    if (const auto* const conditional = graph::as<graph::Conditional>(node)) {
      for (const graph::Stage& stage : conditional->body) add(stage.branches);
    }
  }
};

}  // namespace

NodeTimes CpuProgram::times(const graph::Graph& graph) const {
  NodesByKind nodes;
  for (const graph::Stage& stage : graph.stages) nodes.add(stage.branches);
  NodeTimes all;
  all.replays = measured_replays_.count();
  const double replays = static_cast<double>(std::max<std::uint64_t>(all.replays, 1));
  all.nodes.resize(nodes.launches.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t f = 0; f < launches_[g].size(); ++f) {
      const graph::Launches& launches = launches_[g][f];
      const double seconds = groups_[g].times()[f].seconds() / replays;
      for (std::uint32_t launch = launches.first; launch < launches.first + launches.count; ++launch)
        all.nodes[launch] = {nodes.launches[launch], seconds, launches.count};
    }
  }
  for (std::size_t i = 0; i < nodes.reductions.size(); ++i)
    all.nodes.push_back({nodes.reductions[i], reduce_times_[i].seconds() / replays, 1});
  for (std::size_t i = 0; i < nodes.copies.size(); ++i)
    all.nodes.push_back({nodes.copies[i], copy_times_[i].seconds() / replays, 1});
  std::size_t host_call = 0;
  for (std::size_t i = 0; i < instructions().size(); ++i) {
    if (!std::holds_alternative<graph::RunHostCall>(instructions()[i])) continue;
    all.nodes.push_back({nodes.host_calls[host_call++], host_times_[i].seconds() / replays, 1});
  }
  return all;
}

double CpuProgram::work() const {
  double work = 0;
  for (const graph::Instruction& instruction : instructions()) {
    const auto* const kernel = std::get_if<graph::RunKernel>(&instruction);
    work += kernel != nullptr ? groups_[kernel->launch].work() : std::numeric_limits<double>::infinity();
  }
  return work;
}

std::size_t CpuProgram::most_places() const {
  std::size_t most = static_cast<std::size_t>(team_);
  for (const graph::Instruction& instruction : instructions()) {
    if (const auto* branches = std::get_if<graph::RunBranches>(&instruction))
      most = std::max<std::size_t>(most, branches->count);
  }
  return most;
}

int CpuProgram::threads(const graph::Instruction& instruction) const {
  if (const auto* kernel = std::get_if<graph::RunKernel>(&instruction))
    return groups_[kernel->launch].threads(team_);
  if (const auto* branches = std::get_if<graph::RunBranches>(&instruction))
    return static_cast<int>(std::min<std::int64_t>(branches->count, team_));
  if (const auto* reduce = std::get_if<graph::RunReduce>(&instruction))
    return reductions_[reduce->reduce].threads();
  if (const auto* copy = std::get_if<graph::RunCopy>(&instruction)) return copies_[copy->copy].threads(team_);
  return 1;
}

Piece CpuProgram::piece(const Control* control, const Slice& slice) {
  return {team_, places_, spaces_, control, slice, measured_};
}

KernelCounts CpuProgram::run(const graph::RunKernel& instruction, const Control* control, const Slice& slice,
                             Progress& progress) {
  return groups_[instruction.launch].run(piece(control, slice), progress);
}

void CpuProgram::run(const graph::RunReduce& instruction, const Slice& slice, Progress& progress) {
  const Ticks began = ticks_now();
  reductions_[instruction.reduce].run(piece(nullptr, slice), reduce_shares_, progress);
  if (measured_) reduce_times_[instruction.reduce].add(ticks_now() - began);
}

void CpuProgram::run(const graph::RunCopy& instruction, const Slice& slice, Progress& progress) {
  const Ticks began = ticks_now();
  copies_[instruction.copy].run(piece(nullptr, slice), progress);
  if (measured_) copy_times_[instruction.copy].add(ticks_now() - began);
}

// Groups one after the other, at least a chunk of one, until the branch has ended or the slice is over.
void CpuProgram::run_branch(const std::vector<std::uint32_t>& groups, const Piece& piece, Place& place) {
  while (place.group < groups.size()) {
    if (groups_[groups[place.group]].run_in_place(piece, place)) {
      ++place.group;
      place.done = 0;
    }
    if (place.counts.cut_short > 0 || (place.group < groups.size() && piece.slice.over())) return;
  }
}

KernelCounts CpuProgram::run(const graph::RunBranches& instruction, const Control* control,
                             const Slice& slice, Progress& progress) {
  const std::span branches = std::span(branches_).subspan(instruction.first, instruction.count);
  const std::span places = std::span(places_).first(branches.size());
  if (!std::exchange(progress.left, false)) std::fill(places.begin(), places.end(), Place());
  run_team(this->threads(instruction), [&](int thread, int of) {
    Piece mine = piece(control, slice);
    if (!spaces_.empty()) mine.spaces = mine.spaces.subspan(static_cast<std::size_t>(thread), 1);
    for (auto b = static_cast<std::size_t>(thread); b < branches.size(); b += static_cast<std::size_t>(of))
      run_branch(branches[b], mine, places[b]);
  });
  KernelCounts counts;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    progress.left |= places[b].group < branches[b].size();
    counts += std::exchange(places[b].counts, {});
  }
  return counts;
}

}  // namespace eagle::run
