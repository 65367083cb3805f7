#include "engine/run/cuda/device_graph.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include "engine/kernel/long_loops.h"
#include "engine/kernel/names.h"
#include "engine/run/cuda/device_wait.h"

namespace eagle::run::cuda {
namespace {

// Replays that are enqueued before somebody looks whether they are still wanted: at most so many, and as many
// as take about so long.
constexpr std::int64_t most_enqueued = 256;
constexpr std::chrono::microseconds bunch_time{5'000};
std::string label_of(const graph::Graph& graph, std::uint32_t plane) {
  const std::string& label = graph.planes[plane].label;
  return label.empty() ? "plane " + std::to_string(plane) : "plane " + kernel::quote_name(label);
}

Status check_sizes(const graph::Graph& graph, std::span<const std::shared_ptr<const DeviceMemory>> planes) {
  for (std::uint32_t i = 0; i < planes.size(); ++i) {
    const bool given = planes[i] != nullptr && planes[i]->address() != 0;
    if (given && planes[i]->bytes() < graph.planes[i].bytes) {
      return {Reason::bad_value, label_of(graph, i) + " has " + std::to_string(planes[i]->bytes()) +
                                     " bytes; expected at least " + std::to_string(graph.planes[i].bytes)};
    }
  }
  return {};
}

std::vector<api::DevicePointer> addresses_of(std::span<const std::shared_ptr<const DeviceMemory>> planes) {
  std::vector<api::DevicePointer> addresses;
  for (const auto& plane : planes) addresses.push_back(plane->address());
  return addresses;
}

}  // namespace

// ---- building

StatusOr<std::unique_ptr<DeviceGraph>> DeviceGraph::build(
    DeviceModules& modules, const graph::Graph& graph,
    std::vector<std::shared_ptr<const DeviceMemory>> planes, const LoweringOptions& options) {
  EAGLE_RETURN_IF_ERROR(modules.device()->driver().graphs());
  std::unique_ptr<DeviceGraph> made(new DeviceGraph());
  made->device_ = modules.device();
  made->graph_ = graph;
  EAGLE_ASSIGN_OR_RETURN(const auto turn, made->device_->turns().enter());
  EAGLE_RETURN_IF_ERROR(made->make_memory(std::move(planes), options.account));
  EAGLE_ASSIGN_OR_RETURN(made->stream_, DeviceStream::create(made->device_));
  EAGLE_ASSIGN_OR_RETURN(made->before_, DeviceEvent::create(made->device_));
  EAGLE_ASSIGN_OR_RETURN(made->after_, DeviceEvent::create(made->device_));
  EAGLE_ASSIGN_OR_RETURN(made->program_, lower(modules, made->graph_, addresses_of(made->planes_),
                                               made->beside_.address(), made->ran_.address(), options));
  for (const DeviceMemory& memory : made->program_.scratch) made->own_bytes_ += paid_bytes(memory.bytes());
  made->iterations_.assign(made->program_.loops, 0);
  made->heeds_ =
      std::any_of(made->program_.nodes.begin(), made->program_.nodes.end(), [](const auto& placed) {
        return placed.in_body ||
               (placed.node.kernel != nullptr && kernel::has_long_loops(*placed.node.kernel));
      });
  return made;
}

Status DeviceGraph::make_memory(Planes planes, const Account& account) {
  planes.resize(graph_.planes.size());
  EAGLE_RETURN_IF_ERROR(check_sizes(graph_, planes));
  for (std::uint32_t i = 0; i < planes.size(); ++i) {
    if (planes[i] != nullptr) continue;
    EAGLE_ASSIGN_OR_RETURN(DeviceMemory memory, DeviceMemory::create(device_, graph_.planes[i].bytes, account,
                                                                     "scratch planes of a graph"));
    EAGLE_RETURN_IF_ERROR(memory.fill(0));
    own_bytes_ += paid_bytes(memory.bytes());
    planes[i] = std::make_shared<const DeviceMemory>(std::move(memory));
    own_planes_.push_back(planes[i]);
  }
  planes_ = std::move(planes);
  EAGLE_ASSIGN_OR_RETURN(ran_, DeviceMemory::create(device_, 8 * count_loops(graph_.stages)));
  EAGLE_RETURN_IF_ERROR(ran_.fill(0));
  EAGLE_ASSIGN_OR_RETURN(beside_, DeviceMemory::create(device_, sizeof(Beside)));
  return beside_.fill(0);
}

DeviceGraph::~DeviceGraph() {
  if (enqueued_ > 0 || ahead_) (void)stream_.wait();  // what is under way still looks at the planes
}

bool DeviceGraph::is_whole() const {
  return program_.instructions.empty() ||
         (program_.instructions.size() == 1 && std::holds_alternative<RunPart>(program_.instructions[0]));
}

// ---- planes and numbers

Status DeviceGraph::write(std::uint32_t plane, std::span<const std::byte> from) const {
  return planes_.at(plane)->write(from);
}
Status DeviceGraph::read(std::uint32_t plane, std::span<std::byte> to) const {
  return planes_.at(plane)->read(to);
}

Status DeviceGraph::update(const std::vector<graph::ParamUpdate>& updates) {
  EAGLE_ASSIGN_OR_RETURN(const auto changes, graph::resolve_updates(graph_, updates));
  Params params;
  for (const auto& [target, bits] : changes) params[{target.launch, target.argument}] = bits;
  return set_params(params);
}

DeviceGraph::Params DeviceGraph::params() const {
  Params params;
  for_each_param(program_, [&](std::uint32_t launch, std::uint32_t argument, std::size_t word) {
    params[{launch, argument}] = program_.nodes[program_.launches[launch]].node.words[word];
  });
  return params;
}

Status DeviceGraph::set_params(const Params& params) {
  EAGLE_RETURN_IF_ERROR(enqueue_rest());
  Words before;
  for (const auto& [argument, bits] : params) {
    const std::size_t node = program_.launches.at(argument.first);
    std::vector<std::uint64_t>& words = program_.nodes[node].node.words;
    const std::size_t word = codegen::device_base_word(argument.second);
    if (words[word] == bits) continue;
    before.try_emplace(node, words);
    words[word] = bits;
  }
  EAGLE_RETURN_IF_ERROR(apply(before));
  for (DeviceExec& part : program_.parts) part.discard();
  return {};
}

// ---- other planes

StatusOr<bool> DeviceGraph::rebind(DeviceModules& modules, const graph::Graph& graph, Planes planes,
                                   const LoweringOptions& options) {
  EAGLE_ASSIGN_OR_RETURN(const auto turn, device_->turns().enter());
  planes.resize(graph.planes.size());
  EAGLE_RETURN_IF_ERROR(check_sizes(graph, planes));
  if (!give_own(planes, graph)) return false;
  EAGLE_ASSIGN_OR_RETURN(auto program, lower_again(modules, graph, addresses_of(planes), beside_.address(),
                                                   ran_.address(), options, program_));
  if (!program) return false;
  EAGLE_RETURN_IF_ERROR(enqueue_rest());
  Before before{graph, std::move(planes), *std::move(program), {}};
  for (std::size_t i = 0; i < program_.nodes.size(); ++i) {
    const std::vector<std::uint64_t>& words = program_.nodes[i].node.words;
    if (before.program.nodes[i].node.words != words) before.words[i] = words;
  }
  exchange(before.graph, before.planes, before.program);
  if (const Status status = apply(before.words); !status.ok()) {
    exchange(before.graph, before.planes, before.program);
    return status;
  }
  before_rebind_ = std::move(before);
  return true;
}

// Planes that are to be made here are those that were, as long as all of them are of use and of the right
// size.
bool DeviceGraph::give_own(Planes& planes, const graph::Graph& graph) const {
  std::size_t given = 0;
  for (std::size_t i = 0; i < planes.size(); ++i) {
    if (planes[i] != nullptr) continue;
    if (given == own_planes_.size() || own_planes_[given]->bytes() != graph.planes[i].bytes) return false;
    planes[i] = own_planes_[given++];
  }
  return given == own_planes_.size();
}

// With what the graph has; parts and scratch stay.
void DeviceGraph::exchange(graph::Graph& graph, Planes& planes, DeviceProgram& program) {
  std::swap(graph_, graph);
  std::swap(planes_, planes);
  std::swap(program_, program);
  std::swap(program_.parts, program.parts);
  std::swap(program_.scratch, program.scratch);
}

void DeviceGraph::keep_rebind() {
  if (!before_rebind_) return;
  for (DeviceExec& part : program_.parts) part.discard();
  for (auto& old : before_rebind_->planes) {
    const bool still = std::find(planes_.begin(), planes_.end(), old) != planes_.end();
    if (enqueued_ > 0 && !still) retired_.push_back(std::move(old));
  }
  before_rebind_.reset();
}

void DeviceGraph::undo_rebind() {
  if (!before_rebind_) return;
  Before before = *std::exchange(before_rebind_, std::nullopt);
  // What was executable is that again, where the driver let both be.
  for (const std::size_t part : made_anew(before.words)) {
    program_.parts[part].exchange();
    program_.parts[part].discard();
  }
  restore(before.words);
  exchange(before.graph, before.planes, before.program);
}

// ---- changes of nodes

// The nodes that have other words than `before`; all of them have those again where it fails. Nodes in bodies
// cannot be changed in an executable graph: that is made anew once it has ended, since a graph with
// conditionals is not promised to be executable twice, and what it was is still there until `discard`.
Status DeviceGraph::apply(const Words& before) {
  const std::set<std::uint32_t> anew = made_anew(before);
  Status status = broken_;
  for (auto one = before.begin(); one != before.end() && status.ok(); ++one) status = change(one->first);
  for (auto part = anew.begin(); part != anew.end() && status.ok(); ++part) {
    if (enqueued_ > 0) status = settle();
    if (status.ok()) status = program_.parts[*part].prepare();
  }
  if (!status.ok()) {
    for (DeviceExec& part : program_.parts) part.discard();
    restore(before);
    return status;
  }
  for (const std::uint32_t part : anew) program_.parts[part].exchange();
  return status;
}

// The parts that are made executable for a change of these nodes.
std::set<std::uint32_t> DeviceGraph::made_anew(const Words& nodes) const {
  std::set<std::uint32_t> parts;
  for (const auto& [i, words] : nodes) {
    if (program_.nodes[i].in_body) parts.insert(program_.nodes[i].part);
  }
  return parts;
}

Status DeviceGraph::change(std::size_t node) {
  const PlacedNode& placed = program_.nodes[node];
  return program_.parts[placed.part].change(placed.handle, placed.node, placed.in_body);
}

void DeviceGraph::restore(const Words& before) {
  for (const auto& [i, words] : before) {
    PlacedNode& placed = program_.nodes[i];
    placed.node.words = words;
    DeviceExec& part = program_.parts[placed.part];
    if (change(i).ok()) continue;
    part.drop();
    if (const Status status = change(i); !status.ok()) broken_ = status;
  }
  for (DeviceExec& part : program_.parts) {
    if (!part.executable()) static_cast<void>(part.instantiate());
  }
}

// ---- launches

Status DeviceGraph::launch(std::int64_t count, std::shared_ptr<const Control> control) {
  const bool in_hand = launches_ < wanted_;
  if (count < 0 || (in_hand && !is_whole())) {
    return {Reason::bad_value, count < 0
                                   ? "expected 0 or more replays, found " + std::to_string(count)
                                   : "the graph is being launched; advance that launch to its end first"};
  }
  if (!in_hand) {
    wanted_ = launches_ = 0;
    std::fill(iterations_.begin(), iterations_.end(), 0);
  }
  wanted_ += count;
  control_ = std::move(control);
  position_ = 0;
  cut_short_ = false;
  return is_whole() ? enqueue_whole() : Status();
}

// What a change that failed has left is made executable first.
Status DeviceGraph::run_part(std::uint32_t part) {
  EAGLE_RETURN_IF_ERROR(broken_);
  DeviceExec& exec = program_.parts[part];
  if (!exec.executable()) EAGLE_RETURN_IF_ERROR(exec.instantiate());
  return exec.launch(stream_);
}

// As many as may be under way.
Status DeviceGraph::enqueue_whole() {
  if (enqueued_ == 0) bunch_began_ = std::chrono::steady_clock::now();
  while (launches_ + enqueued_ < wanted_ && enqueued_ < bunch_) {
    // Counters of loops that a replay does not come to are 0.
    if (program_.loops > 0) {
      EAGLE_RETURN_IF_ERROR(device_->run("cuMemsetD8Async", [&](const api::Functions& call) {
        return call.cuMemsetD8Async(ran_.address(), 0, ran_.bytes(), stream_.handle());
      }));
    }
    if (!program_.parts.empty()) EAGLE_RETURN_IF_ERROR(run_part(0));
    ++enqueued_;
  }
  return {};
}

// Before a change: what was launched keeps what it was launched with.
Status DeviceGraph::enqueue_rest() {
  if (launches_ == wanted_) return {};
  if (!is_whole())
    return {Reason::bad_value, "the graph is being launched; advance that launch to its end first"};
  while (launches_ + enqueued_ < wanted_) {
    EAGLE_RETURN_IF_ERROR(settle());
    EAGLE_RETURN_IF_ERROR(enqueue_whole());
  }
  return {};
}

// Waits for what is enqueued. Of replays that were told to stop nobody knows which were whole.
Status DeviceGraph::settle() {
  const Status status = wait_for_stream();
  retired_.clear();
  const std::int64_t bunch = std::exchange(enqueued_, 0);
  if (status.ok()) {
    launches_ += bunch;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - bunch_began_;
    const double fit = static_cast<double>(bunch) * std::chrono::duration<double>(bunch_time) / took;
    bunch_ = std::clamp(static_cast<std::int64_t>(std::min(fit, 4.0 * static_cast<double>(bunch_))),
                        std::int64_t{1}, most_enqueued);
  } else {
    wanted_ = launches_;
    cut_short_ = bunch > 0;
  }
  return status;
}

Status DeviceGraph::wait_for_stream() {
  EAGLE_ASSIGN_OR_RETURN(
      const bool told, wait_or_stop(stream_, heeds_ ? control_.get() : nullptr, [this] { return cancel(); }));
  if (!told) return {};
  const std::int64_t clear = 0;
  EAGLE_RETURN_IF_ERROR(beside_.write(std::as_bytes(std::span(&clear, 1)), offsetof(Beside, cancel)));
  return stopped();
}

Status DeviceGraph::stopped() const {
  const auto far = [&] {
    return std::to_string(launches_) + " of " + std::to_string(wanted_) + " replays were whole";
  };
  if (control_ && control_->cancelled()) return {Reason::cancelled, "the launch was cancelled; " + far()};
  if (control_ && control_->expired())
    return {Reason::deadline, "the deadline of the launch passed; " + far()};
  return {};
}

bool DeviceGraph::ready() const {
  if (enqueued_ == 0) return true;
  const StatusOr<bool> done = stream_.done();
  return !done.ok() || *done;
}

StatusOr<DeviceGraph::Next> DeviceGraph::advance() {
  while (true) {
    EAGLE_ASSIGN_OR_RETURN(const Next next, advance_some());
    if (next != Next::again) return next;
  }
}

StatusOr<DeviceGraph::Next> DeviceGraph::advance_some() {
  if (!is_whole()) return run_program();
  if (enqueued_ > 0 || launches_ < wanted_) {
    EAGLE_RETURN_IF_ERROR(settle());
    if (const Status status = launches_ < wanted_ ? stopped() : Status(); !status.ok()) {
      wanted_ = launches_;
      return status;
    }
    EAGLE_RETURN_IF_ERROR(enqueue_whole());
    if (enqueued_ > 0 || launches_ < wanted_) return Next::again;
  }
  if (program_.loops > 0) EAGLE_RETURN_IF_ERROR(ran_.read(std::as_writable_bytes(std::span(iterations_))));
  return Next::done;
}

void DeviceGraph::give_up() {
  if (enqueued_ > 0) static_cast<void>(settle());
  static_cast<void>(take_back());
  static_cast<void>(catch_up());
  wanted_ = launches_;
  position_ = 0;
}

StatusOr<codegen::DeviceCounts> DeviceGraph::wait() {
  EAGLE_ASSIGN_OR_RETURN(const Next next, advance());
  if (next == Next::host_call)
    return Status(Reason::bad_value, "the graph calls the host, so its launch is advanced, not waited for");
  return take_counts();
}

StatusOr<codegen::DeviceCounts> DeviceGraph::take_counts() {
  codegen::DeviceCounts counts;
  EAGLE_RETURN_IF_ERROR(
      beside_.read(std::as_writable_bytes(std::span(&counts, 1)), offsetof(Beside, counts)));
  EAGLE_RETURN_IF_ERROR(beside_.fill(0));
  return counts;
}

Status DeviceGraph::cancel() const {
  const std::int64_t set = 1;
  return beside_.write(std::as_bytes(std::span(&set, 1)), offsetof(Beside, cancel));
}

// ---- with the host's part

StatusOr<DeviceGraph::Next> DeviceGraph::run_program() {
  EAGLE_RETURN_IF_ERROR(take_back());
  const auto until = std::chrono::steady_clock::now() + bunch_time;
  for (bool first = true; launches_ < wanted_; first = false) {
    if (!first && std::chrono::steady_clock::now() >= until) return Next::again;
    if (position_ == program_.instructions.size()) {
      EAGLE_RETURN_IF_ERROR(finish_replay());
      continue;
    }
    if (const Status status = stopped(); !status.ok()) {
      static_cast<void>(catch_up());
      cut_short_ = position_ > 0;
      wanted_ = launches_;
      return status;
    }
    if (position_ == 0 && program_.loops > 0) {
      EAGLE_RETURN_IF_ERROR(catch_up());
      EAGLE_RETURN_IF_ERROR(ran_.fill(0));
    }
    EAGLE_ASSIGN_OR_RETURN(const Next next, run_next());
    if (next == Next::host_call) return next;
  }
  return Next::done;
}

// One instruction; `host_call`: its caller is to act.
StatusOr<DeviceGraph::Next> DeviceGraph::run_next() {
  const DeviceInstruction& instruction = program_.instructions[position_++];
  if (const auto* part = std::get_if<RunPart>(&instruction)) {
    EAGLE_RETURN_IF_ERROR(run_part(part->part));
    ahead_ = true;
    // Behind work on another stream, or before some, nobody has to wait.
    const bool last = position_ == program_.instructions.size();
    if (!last && std::holds_alternative<RunOnStream>(program_.instructions[position_])) return Next::done;
    if (last && launches_ + 1 < wanted_ && program_.loops == 0) return Next::done;
    EAGLE_RETURN_IF_ERROR(catch_up());
    return Next::done;
  }
  if (const auto* on_stream = std::get_if<RunOnStream>(&instruction)) {
    call_ = on_stream->call;
    EAGLE_RETURN_IF_ERROR(hand_over(on_stream->stream));
    return Next::host_call;
  }
  // The host looks at what the device has made.
  EAGLE_RETURN_IF_ERROR(catch_up());
  if (const auto* host = std::get_if<graph::RunHostCall>(&instruction)) {
    call_ = host->call;
    return Next::host_call;
  }
  if (const auto* skip = std::get_if<graph::SkipUnless>(&instruction)) {
    EAGLE_ASSIGN_OR_RETURN(const bool goes_in, holds(skip->conditional->guard));
    if (!goes_in) position_ = skip->target;
  } else if (const auto* enter = std::get_if<graph::LoopEnter>(&instruction)) {
    iterations_[enter->loop] = 0;
    EAGLE_RETURN_IF_ERROR(store_counter(enter->loop));
  } else if (const auto* test = std::get_if<graph::LoopTest>(&instruction)) {
    EAGLE_ASSIGN_OR_RETURN(const bool goes_in, holds(test->conditional->guard));
    if (goes_in && iterations_[test->loop] < test->conditional->max_iterations) {
      ++iterations_[test->loop];
    } else {
      position_ = test->target;
    }
  } else {
    const auto& back = std::get<graph::LoopBack>(instruction);
    EAGLE_RETURN_IF_ERROR(store_counter(back.loop));
    position_ = back.target;
  }
  return Next::done;
}

// What a callable enqueues comes behind what is enqueued here.
Status DeviceGraph::hand_over(api::Stream to) {
  EAGLE_RETURN_IF_ERROR(before_.order(stream_.handle(), to).within("the stream of a callable"));
  lent_to_ = to;
  return {};
}

// And what comes here behind that.
Status DeviceGraph::take_back() {
  if (!lent_to_) return {};
  const api::Stream from = *std::exchange(lent_to_, std::nullopt);
  ahead_ = true;
  return after_.order(from, stream_.handle()).within("the stream of a callable");
}

// Waits for what is enqueued.
Status DeviceGraph::catch_up() {
  if (!ahead_) return {};
  const Status status = wait_for_stream();
  ahead_ = false;
  retired_.clear();
  if (!status.ok()) {
    wanted_ = launches_;
    cut_short_ = true;
  }
  return status;
}

// Loops of the host were counted here, those of the device there; each is 0 where it is not counted.
Status DeviceGraph::finish_replay() {
  // A launch is over when it returns; between its replays nobody waits.
  if (launches_ + 1 == wanted_) EAGLE_RETURN_IF_ERROR(catch_up());
  ++launches_;
  position_ = 0;
  if (launches_ < wanted_) {
    std::fill(iterations_.begin(), iterations_.end(), 0);
    return {};
  }
  if (program_.loops == 0) return {};
  std::vector<std::int64_t> on_device(program_.loops);
  EAGLE_RETURN_IF_ERROR(ran_.read(std::as_writable_bytes(std::span(on_device))));
  for (std::size_t loop = 0; loop < on_device.size(); ++loop) iterations_[loop] += on_device[loop];
  return {};
}

namespace {

std::int64_t value_of(std::uint64_t bits, const plane::View& view) {
  if (view.dtype == plane::DType::boolean) return bits != 0 ? 1 : 0;
  const auto unused = static_cast<int>(64 - 8 * view.item_bytes);
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

}  // namespace

StatusOr<bool> DeviceGraph::holds(const graph::Guard& guard) const {
  const auto load = [&](const plane::View& view) -> StatusOr<std::int64_t> {
    std::uint64_t bits = 0;
    EAGLE_RETURN_IF_ERROR(
        planes_[view.plane]->read(std::as_writable_bytes(std::span(&bits, 1)).first(view.item_bytes),
                                  static_cast<std::uint64_t>(view.offset)));
    return value_of(bits, view);
  };
  EAGLE_ASSIGN_OR_RETURN(const std::int64_t count, load(guard.count.view));
  std::int64_t baseline = 0;
  if (guard.baseline) {
    EAGLE_ASSIGN_OR_RETURN(baseline, load(guard.baseline->view));
  }
  return (count != baseline) != guard.negated;
}

Status DeviceGraph::store_counter(std::uint32_t loop) const {
  const std::optional<plane::View>& view = program_.counters[loop];
  if (!view) return {};
  const std::int64_t ran = iterations_[loop];
  return planes_[view->plane]->write(std::as_bytes(std::span(&ran, 1)).first(view->item_bytes),
                                     static_cast<std::uint64_t>(view->offset));
}

}  // namespace eagle::run::cuda
