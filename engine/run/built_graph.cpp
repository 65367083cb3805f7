#include "engine/run/built_graph.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "engine/run/cpu/program.h"
#include "engine/run/cpu/team.h"
#include "engine/run/device_backend.h"
#include "engine/run/loop_watch.h"

namespace eagle::run {

BuiltGraph::~BuiltGraph() {
  if (to_keep_) device_->undo_rebind();
}

void BuiltGraph::keep() {
  if (std::exchange(to_keep_, false)) device_->keep_rebind();
}

std::vector<std::string> BuiltGraph::node_labels() const {
  std::vector<std::string> labels;
  labels.reserve(graph_.stages.size());
  for (const graph::Stage& stage : graph_.stages)
    graph::for_each_leaf(stage.branches, [&](const graph::Node& node) { labels.push_back(node.label); });
  return labels;
}

const std::string& BuiltGraph::backend() const {
  static const std::string cpu = "cpu";
  return device_ ? device_->device() : cpu;
}

bool BuiltGraph::enqueues() const { return device_ && device_->is_whole(); }

std::int64_t BuiltGraph::brief_replays() const {
  if (device_) return 0;  // nobody knows what a GPU takes
  // In additions, about ten of which a thread does in a nanosecond; a replay costs some whatever it computes.
  constexpr double little = 4'000'000;
  constexpr double of_a_replay = 2'000;
  return static_cast<std::int64_t>(little / (program_->work() + of_a_replay));
}

Execution BuiltGraph::execution() const {
  if (program_) return program_->execution(graph_, fusion_);
  Execution on_device;
  on_device.fusion = fusion_;
  return on_device;
}

std::vector<CompiledFunction> BuiltGraph::functions() const {
  return device_ ? std::vector<CompiledFunction>() : program_->functions(graph_);
}

NodeTimes BuiltGraph::times() const { return device_ ? NodeTimes() : program_->times(graph_); }

StatusOr<graph::Explanation> BuiltGraph::explain(const graph::NodeReference& node,
                                                 const std::optional<graph::NodeReference>& other) const {
  EAGLE_ASSIGN_OR_RETURN(graph::Explanation found, graph::explain(graph_, node, other, schedule_));
  if (auto* alone = std::get_if<graph::NodeExplanation>(&found))
    alone->execution = execution_of_leaf(execution(), alone->node.index);
  return found;
}

Status BuiltGraph::update(const std::vector<graph::ParamUpdate>& updates) {
  if (device_) {
    EAGLE_RETURN_IF_ERROR(device_->update(updates));
    count(counters_->updates);
    return {};
  }
  EAGLE_ASSIGN_OR_RETURN(const auto changes, graph::resolve_updates(graph_, updates));
  for (const auto& [target, bits] : changes) program_->set_param(target.launch, target.argument, bits);
  count(program_->counters().updates);
  return {};
}

// Takes the numbers of the Params of the same graph over other planes, on the CPU.
Status BuiltGraph::keep_params_of(const BuiltGraph& other) {
  std::uint32_t launch = 0;
  for (const std::uint32_t kernel : program_->kernels()) {
    const std::vector<kernel::Argument>& arguments = graph_.kernels[kernel]->arguments;
    for (std::uint32_t i = 0; i < arguments.size(); ++i) {
      if (!kernel::has_plane(arguments[i].role))
        program_->set_param(launch, i, other.program_->param(launch, i));
    }
    ++launch;
  }
  return {};
}

// A launch on a GPU, which is the backend's to run. Nothing of it is there before its first turn.
struct Replay::OnDevice {
  OnDevice(DeviceBackend& on, std::shared_ptr<Counters> counts_in, std::int64_t replays,
           std::shared_ptr<const Control> heeds)
      : backend(on), counters(std::move(counts_in)), count(replays), control(std::move(heeds)) {}
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  DeviceBackend& backend;
  std::shared_ptr<Counters> counters;
  std::int64_t count;
  std::shared_ptr<const Control> control;
  bool began = false;
  std::int64_t counted = 0;
  KernelCounts counts;
  std::vector<std::int64_t> no_iterations = {};

  ~OnDevice() {
    if (began) backend.give_up();
  }
  Status begin() { return std::exchange(began, true) ? Status() : backend.launch(count, control); }
  StatusOr<Next> advance() {
    EAGLE_RETURN_IF_ERROR(begin());
    const auto next = backend.advance();
    for (; counted < backend.launches(); ++counted) eagle::run::count(counters->launches);
    if (!next.ok()) return next.status();
    if (*next == DeviceBackend::Next::again) return Next::again;
    if (*next == DeviceBackend::Next::host_call) return Next::host_call;
    EAGLE_ASSIGN_OR_RETURN(counts, backend.take_counts());
    return Next::done;
  }
};

// A small machine over the flat program. Its whole state is a position and the loops' counters, so it can
// be left at a host call, or between any two instructions, and entered again by another thread.
struct Replay::State {
  CpuProgram& program;
  std::int64_t count;
  std::shared_ptr<const Control> control;
  std::uint32_t position = 0;
  std::uint32_t call = 0;
  std::int64_t launches = 0;
  std::vector<std::int64_t> iterations;
  KernelCounts counts;
  Progress progress;               // of the instruction at `position`
  std::optional<LoopWatch> watch;  // where one flag does not say all
  bool measured = false;           // the replay in progress
  Ticks call_began = 0;            // of the host call that it is at

  // What kernels look at.
  [[nodiscard]] const Control* loops() const { return watch ? &watch->control() : control.get(); }

  [[nodiscard]] bool at_end() const { return position == program.instructions().size(); }
  void begin(Ticks now);
  void finish_replay();
  [[nodiscard]] Status go_on() const;
  [[nodiscard]] bool part_way() const { return (position > 0 || progress.left) && launches < count; }
  [[nodiscard]] std::string how_far() const;
  Next step(const Slice& slice);
  StatusOr<Next> advance(const Slice& slice);
  [[nodiscard]] bool keeps_team() const;
  void test(const graph::LoopTest& loop);
};

// At the beginning of a turn.
void Replay::State::begin(Ticks now) {
  if (call_began != 0) program.note_host_call(position - 1, now - call_began);
  call_began = 0;
  if (!part_way()) measured = program.begins_replay(now);
  program.measure(measured);
}

void Replay::State::finish_replay() {
  if (measured) program.ends_measured_replay();
  measured = false;
  program.measure(false);
  ++launches;
  eagle::run::count(program.counters().launches);
  if (launches == count) return;  // the last replay's counters stay readable
  position = 0;
  std::fill(iterations.begin(), iterations.end(), 0);
}

std::string Replay::State::how_far() const {
  return std::to_string(launches) + " of " + std::to_string(count) + " replays were whole" +
         (part_way() ? ", the next one was left part way" : "");
}

Status Replay::State::go_on() const {
  if (!control) return {};
  if (control->cancelled()) return Status(Reason::cancelled, "the launch was cancelled; " + how_far());
  if (control->expired()) {
    return Status(Reason::deadline, "the deadline of the launch passed; " + how_far());
  }
  return {};
}

void Replay::State::test(const graph::LoopTest& loop) {
  std::int64_t& ran = iterations[loop.loop];
  if (ran < loop.conditional->max_iterations && program.holds(position)) {
    ++ran;
    ++position;
  } else {
    position = loop.target;
  }
}

// Executes the instruction at `position` and moves on to the next one.
Replay::Next Replay::State::step(const Slice& slice) {
  const graph::Instruction& instruction = program.instructions()[position];
  if (const auto* kernel = std::get_if<graph::RunKernel>(&instruction)) {
    counts += program.run(*kernel, loops(), slice, progress);
    if (!progress.left) ++position;
  } else if (const auto* branches = std::get_if<graph::RunBranches>(&instruction)) {
    counts += program.run(*branches, loops(), slice, progress);
    if (!progress.left) ++position;
  } else if (const auto* reduce = std::get_if<graph::RunReduce>(&instruction)) {
    program.run(*reduce, slice, progress);
    if (!progress.left) ++position;
  } else if (const auto* host = std::get_if<graph::RunHostCall>(&instruction)) {
    call = host->call;
    ++position;
    if (measured) call_began = ticks_now();
    return Next::host_call;
  } else if (const auto* skip = std::get_if<graph::SkipUnless>(&instruction)) {
    position = program.holds(position) ? position + 1 : skip->target;
  } else if (const auto* copy = std::get_if<graph::RunCopy>(&instruction)) {
    program.run(*copy, slice, progress);
    if (!progress.left) ++position;
  } else if (const auto* enter = std::get_if<graph::LoopEnter>(&instruction)) {
    iterations[enter->loop] = 0;
    program.tell(enter->loop, 0);
    ++position;
  } else if (const auto* loop = std::get_if<graph::LoopTest>(&instruction)) {
    test(*loop);
  } else {
    const auto& back = std::get<graph::LoopBack>(instruction);
    program.tell(back.loop, iterations[back.loop]);
    position = back.target;
  }
  return Next::done;
}

Replay::Replay(BuiltGraph& graph, std::int64_t count, std::shared_ptr<const Control> control) {
  if (graph.device_) {
    device_.reset(new OnDevice(*graph.device_, graph.counters_, count, std::move(control)));
    return;
  }
  state_.reset(new State{*graph.program_, count, std::move(control), 0, 0, 0, {}, {}, {}, {}, false, 0});
  state_->iterations.assign(state_->program.loops(), 0);
  if (graph.long_loops_ && state_->control && state_->control->caller) state_->watch.emplace(state_->control);
}

Replay::~Replay() = default;

StatusOr<Replay::Next> Replay::State::advance(const Slice& slice) {
  for (bool moved = false; launches < count; moved = true) {
    // A replay is whole as soon as nothing of it is left, whatever the control says by then.
    if (at_end()) {
      finish_replay();
      if (launches == count) break;
    }
    EAGLE_RETURN_IF_ERROR(go_on());
    if (moved && slice.time_is_over()) return Next::again;
    if (!at_end() && step(slice) == Next::host_call) return Next::host_call;
    // What a cancel or the deadline cut short has not done its work, be it the last of all.
    if (counts.cut_short > 0) {
      EAGLE_RETURN_IF_ERROR(go_on());
      return Status(Reason::cancelled, "the launch was cancelled; " + how_far());
    }
  }
  return Next::done;
}

// A region for each instruction is one too many where several come one after the other; for one alone, or
// where one thread is enough, a team that is kept would wait for nothing.
bool Replay::State::keeps_team() const {
  const std::int64_t once = program.shared_instructions();
  return once > 0 && (once > 1 || program.loops() > 0 || count - launches > 1);
}

StatusOr<Replay::Next> Replay::advance() {
  if (device_) return device_->advance();
  State& state = *state_;
  Slice slice(state.program.piece_s());
  slice.heed(state.control.get());
  state.begin(slice.began());
  if (!state.keeps_team()) return state.advance(slice);
  StatusOr<Next> next = Next::done;
  hold_team(state.program.team(), [&] { next = state.advance(slice); });
  return next;
}

Status Replay::begin() { return device_ ? device_->begin() : Status(); }
bool Replay::ready() const { return !device_ || device_->backend.ready(); }

std::uint32_t Replay::call() const { return device_ ? device_->backend.call() : state_->call; }
bool Replay::part_way() const {
  return device_ ? device_->began && device_->backend.part_way() : state_->part_way();
}
std::int64_t Replay::launches() const { return device_ ? device_->counted : state_->launches; }
const KernelCounts& Replay::counts() const { return device_ ? device_->counts : state_->counts; }
const std::vector<std::int64_t>& Replay::iterations() const {
  if (!device_) return state_->iterations;
  return device_->began ? device_->backend.iterations() : device_->no_iterations;
}

}  // namespace eagle::run
