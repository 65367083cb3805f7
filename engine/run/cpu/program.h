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
#include "engine/run/cpu/bound_group.h"
#include "engine/run/cpu/bound_launch.h"
#include "engine/run/cpu/bound_reduce.h"
#include "engine/run/cpu/copy.h"
#include "engine/run/cpu/guard.h"
#include "engine/run/cpu/piece.h"
#include "engine/run/cpu/shared_launch.h"
#include "engine/run/execution.h"
#include "engine/run/fusion.h"
#include "engine/run/node_times.h"

namespace eagle::run {

class CpuProgram {
public:
  // `fused` is of the plan. `code` has one entry a kernel of the plan; those of kernels that no launch uses
  // by itself may be null. PRIVATE_ARRAY for memory that this process cannot reach.
  // `rules` are BoundGroup's, `piece_s` a Slice's.
  static StatusOr<std::unique_ptr<CpuProgram>> bind(
      graph::RunPlan plan, FusedPlan fused, std::span<const std::shared_ptr<const codegen::Code>> code,
      std::span<const PlaneMemory> planes, int team, const GroupRules& rules, double piece_s,
      std::shared_ptr<Counters> counters);

  // Their launches are groups.
  [[nodiscard]] const std::vector<graph::Instruction>& instructions() const { return program_; }
  [[nodiscard]] std::uint32_t loops() const { return loops_; }
  // Of one replay, about, in additions; infinite where it is anything but kernels without loops.
  [[nodiscard]] double work() const;
  // How many threads there are at most, and what is to be done with more than one in one replay: so many
  // instructions, of each body of a loop once.
  [[nodiscard]] int team() const { return team_; }
  [[nodiscard]] std::int64_t shared_instructions() const { return shared_instructions_; }
  // The kernel of each launch, an index into the plan's kernels.
  [[nodiscard]] const std::vector<std::uint32_t>& kernels() const { return kernels_; }
  // The guard of the instruction at `position`, a SkipUnless or LoopTest.
  [[nodiscard]] bool holds(std::uint32_t position) const { return guards_[position]->holds(); }

  // Tells the counter of a loop, if it has one, how many bodies have run.
  void tell(std::uint32_t loop, std::int64_t bodies) const {
    if (loop_counters_[loop]) loop_counters_[loop]->store(bodies);
  }

  // How long pieces are.
  [[nodiscard]] double piece_s() const { return piece_s_; }
  // Runs the instruction, or the next piece of it: until it is done or the slice is over, at least some of
  // it. `control` may be null; loops inside kernels look at its flag.
  KernelCounts run(const graph::RunKernel& instruction, const Control* control, const Slice& slice,
                   Progress& progress);
  KernelCounts run(const graph::RunBranches& instruction, const Control* control, const Slice& slice,
                   Progress& progress);
  void run(const graph::RunReduce& instruction, const Slice& slice, Progress& progress);
  void run(const graph::RunCopy& instruction, const Slice& slice, Progress& progress);

  // Whether what runs from now on is measured, and what of it only the caller sees: a replay that begins, one
  // that was measured and is whole, and the host call at `position` with what it took.
  void measure(bool on) { measured_ = on; }
  bool begins_replay(Ticks now) { return measured_replays_.begins(now); }
  void ends_measured_replay();
  void note_host_call(std::uint32_t position, Ticks took) { host_times_[position].add(took); }
  // From any thread, at any time. `graph` is the one that the plan is of.
  [[nodiscard]] NodeTimes times(const graph::Graph& graph) const;

  // The bits of a Param: of an argument of a launch of the plan. Not while anything runs.
  [[nodiscard]] std::uint64_t param(std::uint32_t launch, std::uint32_t argument) const {
    const Home& home = homes_[launch];
    return groups_[home.group].function(home.function).param(argument_there(launch, argument));
  }
  void set_param(std::uint32_t launch, std::uint32_t argument, std::uint64_t bits) {
    const Home& home = homes_[launch];
    groups_[home.group].function(home.function).set_param(argument_there(launch, argument), bits);
  }

  // Of the graph that the plan is of.
  [[nodiscard]] Execution execution(const graph::Graph& graph, graph::Fusion fusion) const {
    return execution_of(graph, launches_, branches_, groups_, fusion, team_);
  }

  // Its functions in the order of its groups, as far as `most_reported_nodes` and `_bytes` go. `graph` is
  // the one that the plan is of.
  [[nodiscard]] std::vector<CompiledFunction> functions(const graph::Graph& graph) const;

  [[nodiscard]] Counters& counters() const { return *counters_; }

private:
  // Where a launch runs.
  struct Home {
    std::uint32_t group = 0;
    std::uint32_t function = 0;
  };
  // The argument of its function that an argument of a launch is.
  [[nodiscard]] std::uint32_t argument_there(std::uint32_t launch, std::uint32_t argument) const {
    const Home& home = homes_[launch];
    const auto& code = fused_[home.group][home.function];
    if (!code) return argument;
    return code->fused.arguments[launch - launches_[home.group][home.function].first][argument];
  }

  CpuProgram() = default;
  [[nodiscard]] std::size_t most_places() const;
  [[nodiscard]] int threads(const graph::Instruction& instruction) const;  // that it wants
  Piece piece(const Control* control, const Slice& slice);
  void run_branch(const std::vector<std::uint32_t>& groups, const Piece& piece, Place& place);
  Status bind_groups(const graph::RunPlan& plan, const FusedPlan& fused,
                     std::span<const std::shared_ptr<const codegen::Code>> code,
                     std::span<const PlaneMemory> planes, const GroupRules& rules);
  Status bind_guards(std::span<const PlaneMemory> planes);
  Status bind_counters(std::span<const std::optional<plane::View>> counters,
                       std::span<const PlaneMemory> planes);

  std::vector<graph::Instruction> program_;
  std::vector<std::vector<std::uint32_t>> branches_;  // groups, in order
  // By group and function: its launches, and what they were fused to; null: it is one.
  std::vector<std::vector<graph::Launches>> launches_;
  std::vector<std::vector<std::shared_ptr<const FusedCode>>> fused_;
  std::uint32_t loops_ = 0;
  std::vector<std::optional<BoundCounter>> loop_counters_;  // by loop
  std::vector<BoundGroup> groups_;
  std::vector<Home> homes_;             // by launch
  std::vector<std::uint32_t> kernels_;  // by launch
  std::vector<ThreadSpace> spaces_;     // one a thread, where a launch shares
  std::vector<Place> places_;           // of the instruction in hand: one a thread, one a branch
  std::vector<BoundReduce> reductions_;
  std::vector<ReduceShare> reduce_shares_;  // one a thread, where something is reduced
  std::vector<BoundCopy> copies_;
  std::vector<std::optional<BoundGuard>> guards_;  // by instruction
  int team_ = 1;
  std::int64_t shared_instructions_ = 0;
  double piece_s_ = usual_piece_s;
  std::shared_ptr<Counters> counters_;
  bool measured_ = false;
  MeasuredReplays measured_replays_;
  std::vector<TickSum> host_times_;  // by instruction
  std::vector<TickSum> reduce_times_;
  std::vector<TickSum> copy_times_;
};

}  // namespace eagle::run
