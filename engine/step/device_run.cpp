#include "engine/step/device_run.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "engine/base/clock.h"
#include "engine/kernel/float_environment.h"
#include "engine/kernel/names.h"
#include "engine/plane/overlap.h"
#include "engine/plane/packed.h"
#include "engine/run/cuda/device_nodes.h"
#include "engine/run/cuda/device_transfer.h"
#include "engine/run/cuda/device_wait.h"
#include "engine/run/reduction/reduction.h"

namespace eagle::step {

using run::cuda::Beside;
using run::cuda::CapturedGraph;
using run::cuda::DeviceExec;
using run::cuda::DeviceMemory;
using run::cuda::DeviceNode;
using run::cuda::DeviceNodes;
using run::cuda::StepState;
using run::cuda::StepWords;
namespace api = run::cuda::api;
using Clock = std::chrono::steady_clock;
using Next = Simulation::Next;

namespace {

// Before anybody knows what a step takes: so many steps, of which bodies have at most so many.
constexpr std::int64_t first_pass_steps = 256;
constexpr std::int64_t first_body_steps = 16;
// A pass is at most so many times as long as the one before.
constexpr std::int64_t pass_growth = 4;

std::vector<std::uint64_t> words_of(const StepWords& words) {
  std::vector<std::uint64_t> all(sizeof words / 8);
  std::memcpy(all.data(), &words, sizeof words);
  return all;
}

// A view of the same elements, one after the other at the begin of a plane.
plane::View packed_at(std::uint32_t plane, const plane::View& view) {
  plane::View packed = view;
  packed.plane = plane;
  packed.offset = 0;
  packed.strides = plane::row_major_strides(view.shape, view.item_bytes);
  return packed;
}

plane::View words_at(std::uint32_t plane, std::size_t bytes) {
  return {plane, 0, plane::DType::i64, 8, {static_cast<std::int64_t>(bytes / 8)}, {8}};
}

std::string name_of_plane(const Model& model, std::size_t plane) {
  const std::string& label = model.planes[plane].label;
  return label.empty() ? "plane " + std::to_string(plane) : "plane " + kernel::quote_name(label);
}

}  // namespace

Status check_on_device(const Model& model, const run::cuda::PlanesOnDevice& planes) {
  std::size_t there = 0;
  while (there < planes.memory.size() && planes.memory[there] == nullptr) ++there;
  const auto check = [&](const plane::View& view, const std::string& who) -> Status {
    if (planes.memory[view.plane] != nullptr) return {};
    return {Reason::mixed_devices, who + ": " + name_of_plane(model, view.plane) +
                                       " is in memory of the host, and " + name_of_plane(model, there) +
                                       " lies on " + text_of(planes.unit->info()) +
                                       "; a run computes where all of its arrays are: make this one with "
                                       "device=\"" +
                                       planes.unit->name() + "\", or the other one with device=\"cpu\""};
  };
  for (const StepKernel& part : model.kernels) {
    for (std::size_t a = 0; a < part.launch.arguments.size(); ++a) {
      if (!part.launch.arguments[a].view) continue;
      EAGLE_RETURN_IF_ERROR(
          check(*part.launch.arguments[a].view, "kernel " + kernel::quote_name(part.kernel->name) + ", " +
                                                    kernel::quote_name(part.kernel->arguments[a].name)));
    }
  }
  if (!model.record) return {};
  for (const Record::Plane& recorded : model.record->planes)
    EAGLE_RETURN_IF_ERROR(check(recorded.rows, "record"));
  return {};
}

StatusOr<std::int64_t> live_on_device(const Model& model, const run::cuda::PlanesOnDevice& planes) {
  if (model.mask == none || model.samples == 0) return model.samples;
  const plane::View& view = model.columns[model.mask].view;
  std::vector<std::byte> masks(static_cast<std::size_t>(model.samples));
  EAGLE_RETURN_IF_ERROR(planes.memory[view.plane]->read(masks, static_cast<std::uint64_t>(view.offset)));
  return std::count(masks.begin(), masks.end(), std::byte{0});
}

// ---- building

DeviceRun::DeviceRun(const run::cuda::PlanesOnDevice& planes, Model model, RunResult begun, Shared shared,
                     const Options& options)
    : planes_(planes),
      model_(std::move(model)),
      options_(options),
      shared_(std::move(shared)),
      has_captured_(any_of_host_steps(true)),
      has_host_steps_within_(any_of_host_steps(false)),
      fused_(model_.kernels.size() == 1 && !model_.mixes && !model_.kernels[0].kernel->shares() &&
             !has_captured_ && !has_host_steps_within_),
      long_loops_(std::any_of(model_.kernels.begin(), model_.kernels.end(),
                              [](const StepKernel& part) { return part.long_loops; })),
      result_(std::move(begun)) {}

std::shared_ptr<const CapturedGraph> DeviceRun::captured(const HostStep& step) const {
  const auto found = planes_.works.find(step.call);
  return step.every > 1 || found == planes_.works.end() ? nullptr : found->second.graph;
}

bool DeviceRun::any_of_host_steps(bool captured) const {
  return std::any_of(model_.host_steps.begin(), model_.host_steps.end(), [&](const HostStep& step) {
    return step.every == 1 && (this->captured(step) != nullptr) == captured;
  });
}

bool DeviceRun::captured_parts_write(const plane::View& view) const {
  return std::any_of(model_.host_steps.begin(), model_.host_steps.end(), [&](const HostStep& step) {
    return captured(step) != nullptr &&
           std::any_of(step.writes.begin(), step.writes.end(), [&](const graph::NamedView& written) {
             return plane::overlap(written.view, view).overlaps;
           });
  });
}

DeviceRun::~DeviceRun() { static_cast<void>(stream_.wait()); }  // of a run that is given up

StatusOr<std::unique_ptr<DeviceRun>> DeviceRun::build(const run::cuda::PlanesOnDevice& planes, Model model,
                                                      RunResult begun, Shared shared,
                                                      const Options& options) {
  const run::cuda::Driver& driver = planes.unit->device->driver();
  EAGLE_RETURN_IF_ERROR(driver.graphs());
  std::unique_ptr<DeviceRun> made(
      new DeviceRun(planes, std::move(model), std::move(begun), std::move(shared), options));
  EAGLE_ASSIGN_OR_RETURN(const auto turn, planes.unit->device->turns().enter());
  EAGLE_RETURN_IF_ERROR(made->make_memory());
  EAGLE_RETURN_IF_ERROR(made->make_bodies());
  RunReport& report = made->result_.report;
  report.mode = name_of(made->fused_ ? Mode::fused : Mode::stepwise);
  report.backend = planes.unit->name();
  for (GroupReport& group : report.dispatch) {
    if (group.policy == kernel::DispatchPolicy::segmented) group.policy = kernel::DispatchPolicy::switch_;
  }
  const std::string why = made->why_host_loop();
  report.schedule = why.empty() ? "cuda_graph" : "host_loop: " + why;
  if (why.empty()) EAGLE_RETURN_IF_ERROR(made->make_loops());
  report.build_s = seconds_since(made->shared_.asked);
  return made;
}

std::string DeviceRun::why_host_loop() const {
  const Status& driver = planes_.unit->device->driver().conditionals();
  if (has_host_steps_within_) return "the client has a part in the step";
  if (!driver.ok()) return driver.message();
  if (!options_.conditionals) return "conditional nodes are switched off";
  for (const HostStep& step : model_.host_steps) {
    const auto graph = captured(step);
    if (graph == nullptr || graph->fits_in_bodies().ok()) continue;
    return "what was captured for the step cannot be in a loop of the device: " +
           graph->fits_in_bodies().message();
  }
  return {};
}

Status DeviceRun::make_memory() {
  const auto& device = planes_.unit->device;
  EAGLE_ASSIGN_OR_RETURN(state_, DeviceMemory::create(device, sizeof(State)));
  EAGLE_ASSIGN_OR_RETURN(saved_state_, DeviceMemory::create(device, sizeof(State)));
  EAGLE_ASSIGN_OR_RETURN(stream_, run::cuda::DeviceStream::create(device));
  for (const auto& memory : planes_.memory) addresses_.push_back(memory == nullptr ? 0 : memory->address());
  addresses_.push_back(state_.address());
  addresses_.push_back(saved_state_.address());
  return state_.fill(0);
}

StatusOr<DeviceNode> DeviceRun::copy_node(DeviceNodes& nodes, const plane::View& from,
                                          const plane::View& to) const {
  EAGLE_ASSIGN_OR_RETURN(std::vector<DeviceNode> chain, nodes.copy({from, to}));
  chain.front().place(addresses_);
  return std::move(chain.front());
}

Status DeviceRun::make_bodies() {
  const bool sets = planes_.unit->device->driver().conditionals().ok();
  const api::DevicePointer state = state_.address() + offsetof(State, step);
  DeviceNodes nodes(*planes_.unit->modules, state_.address() + offsetof(State, beside), planes_.account);
  nodes.first_step_at(state + offsetof(StepState, steps));
  if (model_.shard) nodes.number_samples(model_.shard->base, model_.shard->of);
  std::vector<std::int64_t> sizes;
  for (const std::int64_t steps : options_.fused_steps) {
    // What a loop of a kernel may be told to leave is one step.
    if (fused_ && !long_loops_ && steps > 1 && steps <= model_.max_steps &&
        sizes.size() + 1 < run::cuda::most_step_loops)
      sizes.push_back(steps);
  }
  sizes.push_back(1);
  for (std::size_t loop = 0; loop < sizes.size(); ++loop) {
    Body& body = bodies_.emplace_back();
    body.steps = sizes[loop];
    for (std::size_t i = 0; i < model_.kernels.size(); ++i) {
      const StepKernel& part = model_.kernels[i];
      add_host_parts(body, i);
      EAGLE_ASSIGN_OR_RETURN(std::vector<DeviceNode> chain,
                             nodes.launch(part.kernel, part.launch, body.steps));
      for (DeviceNode& node : chain) node.place(addresses_);
      body.parts.push_back({std::move(chain), nullptr, none});
      if (!model_.shard || body.steps > 1) continue;
      for (const DeviceNodes::Values& values : nodes.values()) {
        const std::int64_t item = kernel::bytes_of(part.kernel->arguments[values.argument].type.scalar);
        reduced_.push_back({values.at, static_cast<std::uint64_t>(item * model_.samples),
                            static_cast<std::uint32_t>(addresses_.size())});
        addresses_.push_back(values.at);
      }
    }
    add_host_parts(body, model_.kernels.size());
    StepWords words;
    words.state = state;
    words.counts = state_.address() + offsetof(State, beside.counts);
    words.taken = words.next = body.steps;
    words.limit = state + offsetof(StepState, limits) + 8 * loop;
    EAGLE_ASSIGN_OR_RETURN(DeviceNode account,
                           nodes.routine(run::cuda::step_ptx(nodes.arch(), sets), words_of(words)));
    body.account.push_back(std::move(account));
  }
  if (model_.mask != none && model_.samples > 0) {
    const plane::View& mask = model_.columns[model_.mask].view;
    EAGLE_ASSIGN_OR_RETURN(count_,
                           nodes.routine(run::cuda::count_zeros_ptx(nodes.arch()),
                                         {static_cast<std::uint64_t>(model_.samples),
                                          addresses_[mask.plane] + static_cast<std::uint64_t>(mask.offset),
                                          state + offsetof(StepState, live)},
                                         std::max<std::int64_t>(model_.samples, 2)));
    recounts_ = captured_parts_write(mask);
  }
  if (recounts_) {
    EAGLE_ASSIGN_OR_RETURN(std::vector<DeviceNode> account, recount(nodes));
    std::vector<DeviceNode>& behind = bodies_.back().account;  // the only body: nothing is fused
    behind.insert(behind.begin(), account.begin(), account.end());
  }
  if (long_loops_) EAGLE_RETURN_IF_ERROR(make_saves(nodes));
  EAGLE_RETURN_IF_ERROR(make_records(nodes));
  result_.report.compiled = nodes.loaded();
  for (DeviceMemory& memory : nodes.take_scratch()) scratch_.push_back(std::move(memory));
  return {};
}

// Host steps that come before a kernel, in the order of the step.
void DeviceRun::add_host_parts(Body& body, std::size_t before) const {
  for (std::size_t i = 0; i < model_.host_steps.size(); ++i) {
    const HostStep& step = model_.host_steps[i];
    if (step.before != before || step.every > 1) continue;
    auto graph = captured(step);
    const std::size_t host = graph == nullptr ? i : none;
    body.parts.push_back({{}, std::move(graph), host});
  }
}

// The samples that are live after a step, as the loop sees them: by the mask, besides those that kernels
// finished in this run.
StatusOr<std::vector<DeviceNode>> DeviceRun::recount(DeviceNodes& nodes) const {
  const auto state = static_cast<std::uint32_t>(planes_.memory.size());
  const auto word = [&](std::size_t offset) {
    return plane::View{state, static_cast<std::int64_t>(offset), plane::DType::i64, 8, {1}, {8}};
  };
  EAGLE_ASSIGN_OR_RETURN(DeviceNode finished, copy_node(nodes, word(offsetof(State, beside.counts.finished)),
                                                        word(offsetof(State, step.live))));
  return std::vector<DeviceNode>{std::move(finished), *count_};
}

// What a step that is left must be undone to: all that its kernels and what was captured write, and what was
// counted.
Status DeviceRun::make_saves(DeviceNodes& nodes) {
  const auto state = static_cast<std::uint32_t>(planes_.memory.size()), saved_state = state + 1;
  EAGLE_ASSIGN_OR_RETURN(DeviceNode save, copy_node(nodes, words_at(state, sizeof(State)),
                                                    words_at(saved_state, sizeof(State))));
  saves_.push_back(std::move(save));
  std::vector<const plane::View*> written;
  for (const StepKernel& part : model_.kernels) {
    const std::vector<kernel::Access> accesses = kernel::accesses(*part.kernel);
    for (std::size_t a = 0; a < accesses.size(); ++a) {
      const auto& view = part.launch.arguments[a].view;
      const bool known = std::any_of(written.begin(), written.end(),
                                     [&](const plane::View* other) { return *other == *view; });
      if (view && accesses[a].written && plane::elements(*view) > 0 && !known) written.push_back(&*view);
    }
  }
  for (const HostStep& step : model_.host_steps) {
    if (captured(step) == nullptr) continue;
    for (const graph::NamedView& view : step.writes) {
      // Of the host's memory nothing is copied: nobody saw it there but the client.
      if (plane::elements(view.view) > 0 && planes_.memory[view.view.plane] != nullptr)
        written.push_back(&view.view);
    }
  }
  for (const plane::View* view : written) EAGLE_RETURN_IF_ERROR(add_save(nodes, *view));
  for (const Reduced& reduced : reduced_) {
    const auto bytes = static_cast<std::int64_t>(reduced.bytes);
    EAGLE_RETURN_IF_ERROR(add_save(nodes, {reduced.plane, 0, plane::DType::other, 1, {bytes}, {1}}));
  }
  return {};
}

Status DeviceRun::add_save(DeviceNodes& nodes, const plane::View& view) {
  const auto bytes = static_cast<std::uint64_t>(plane::elements(view)) * view.item_bytes;
  EAGLE_ASSIGN_OR_RETURN(
      DeviceMemory memory,
      DeviceMemory::create(planes_.unit->device, bytes, planes_.account, "copies of what a step changes"));
  const plane::View there = packed_at(static_cast<std::uint32_t>(addresses_.size()), view);
  addresses_.push_back(memory.address());
  scratch_.push_back(std::move(memory));
  EAGLE_ASSIGN_OR_RETURN(DeviceNode out, copy_node(nodes, view, there));
  EAGLE_ASSIGN_OR_RETURN(DeviceNode back, copy_node(nodes, there, view));
  saves_.push_back(std::move(out));
  restores_.push_back(std::move(back));
  return {};
}

Status DeviceRun::make_records(DeviceNodes& nodes) {
  if (!model_.record || model_.samples == 0) return {};
  for (const Record::Plane& recorded : model_.record->planes) {
    plane::View row = recorded.rows;
    const std::int64_t bytes = row.strides.front();
    row.shape.erase(row.shape.begin());
    row.strides.erase(row.strides.begin());
    EAGLE_ASSIGN_OR_RETURN(DeviceNode copy, copy_node(nodes, model_.columns[recorded.column].view, row));
    recorded_.push_back({std::move(copy), bytes});
  }
  return {};
}

// One loop behind the other.
Status DeviceRun::make_loops() {
  EAGLE_ASSIGN_OR_RETURN(DeviceExec exec, DeviceExec::create(planes_.unit->device));
  std::vector<api::GraphNode> before;
  for (Body& body : bodies_) {
    EAGLE_ASSIGN_OR_RETURN(const std::uint64_t handle, exec.conditional(exec.graph()));
    DeviceNode account = body.account.back();
    account.words[offsetof(StepWords, handle) / 8] = handle;
    DeviceNode enter = account;
    enter.words[offsetof(StepWords, taken) / 8] = 0;
    EAGLE_ASSIGN_OR_RETURN(const api::GraphNode entered, exec.add(exec.graph(), enter, before));
    api::Graph inside = nullptr;
    EAGLE_ASSIGN_OR_RETURN(const api::GraphNode loop,
                           exec.add(exec.graph(), api::conditional_while, handle, {&entered, 1}, inside));
    std::vector<api::GraphNode> parents;
    const auto add = [&](const DeviceNode& node) -> Status {
      EAGLE_ASSIGN_OR_RETURN(const api::GraphNode added, exec.add(inside, node, parents));
      parents = {added};
      return {};
    };
    for (const DeviceNode& node : saves_) EAGLE_RETURN_IF_ERROR(add(node));
    for (const Part& part : body.parts) {
      for (const DeviceNode& node : part.chain) EAGLE_RETURN_IF_ERROR(add(node));
      if (part.captured == nullptr) continue;
      EAGLE_ASSIGN_OR_RETURN(const api::GraphNode added, exec.add(inside, *part.captured, parents));
      parents = {added};
    }
    for (std::size_t i = 0; i + 1 < body.account.size(); ++i) EAGLE_RETURN_IF_ERROR(add(body.account[i]));
    EAGLE_RETURN_IF_ERROR(add(account));
    before = {loop};
  }
  EAGLE_RETURN_IF_ERROR(exec.instantiate());
  loops_.emplace(std::move(exec));
  return {};
}

// ---- what the device is told, and says

Status DeviceRun::enqueue(const DeviceNode& node) const {
  return stream_.launch(*node.module, node.grid.blocks, node.grid.threads, node.words);
}

Status DeviceRun::enqueue(const std::vector<DeviceNode>& nodes) const {
  for (const DeviceNode& node : nodes) EAGLE_RETURN_IF_ERROR(enqueue(node));
  return {};
}

Status DeviceRun::enqueue(const Part& part) const {
  return part.captured != nullptr ? part.captured->launch(stream_) : enqueue(part.chain);
}

// Once the run is to stop, loops of steps end with the step in hand, which a loop of a kernel may not have
// ended by itself.
Status DeviceRun::wait() const {
  const auto tell = [this]() -> Status {
    const std::int64_t set = 1;
    const auto word = std::as_bytes(std::span(&set, 1));
    EAGLE_RETURN_IF_ERROR(state_.write(word, offsetof(State, step.cancel)));
    return long_loops_ ? state_.write(word, offsetof(State, beside.cancel)) : Status();
  };
  return run::cuda::wait_or_stop(stream_, shared_.control.get(), tell).status();
}

Status DeviceRun::look() { return state_.read(std::as_writable_bytes(std::span(&now_, 1))); }

// The samples that are live, and `besides`, as the loops will see them, with the steps at which they end.
// Nobody waits for it.
Status DeviceRun::count_live(std::int64_t besides, const std::vector<std::int64_t>& limits) {
  now_.step.live = count_ ? besides : besides + model_.samples;
  for (std::size_t loop = 0; loop < limits.size(); ++loop) now_.step.limits[loop] = limits[loop];
  const auto from = offsetof(StepState, live);
  EAGLE_RETURN_IF_ERROR(
      state_.write(std::as_bytes(std::span(&now_.step, 1)).subspan(from), offsetof(State, step) + from));
  return count_ ? enqueue(*count_) : Status();
}

bool DeviceRun::was_cut() const { return now_.beside.counts.cancelled + now_.beside.unseen.cancelled > 0; }

// The step in hand was left within a loop of a kernel.
Status DeviceRun::undo() {
  EAGLE_RETURN_IF_ERROR(enqueue(restores_));
  EAGLE_RETURN_IF_ERROR(stream_.wait());
  return saved_state_.read(std::as_writable_bytes(std::span(&now_, 1)));
}

void DeviceRun::take_counts() {
  RunReport& report = result_.report;
  const codegen::DeviceCounts& counts = now_.beside.counts;
  // Of a mask that others write, too, what was live at the start tells.
  report.finished = recounts_ ? live_at_start_ - (now_.step.live - counts.finished) : counts.finished;
  report.counts.clamped = counts.clamped;
  report.counts.zero_divisions = counts.zero_divisions;
  report.counts.dropped = counts.dropped;
  report.fused_steps = std::max(report.fused_steps, now_.step.last_step - report.steps);
  report.steps = now_.step.last_step;
  steps_ = now_.step.steps;
}

// ---- running

std::optional<RunStatus> DeviceRun::asked_to_stop() const {
  if (shared_.control && shared_.control->cancelled()) return RunStatus::cancelled;
  if (shared_.control && shared_.control->expired()) return RunStatus::deadline;
  return std::nullopt;
}

Status DeviceRun::begin() {
  start_ = Clock::now();
  EAGLE_RETURN_IF_ERROR(count_live(0, {}));
  EAGLE_RETURN_IF_ERROR(stream_.wait());
  EAGLE_RETURN_IF_ERROR(look());
  live_ = live_at_start_ = now_.step.live;
  at_ = At::whole_step;
  if (const auto asked = asked_to_stop()) {
    // Whoever cancelled it may have done so while others still use its planes: nothing is recorded there.
    return end(live_ == 0 ? RunStatus::finished : model_.max_steps == 0 ? RunStatus::max_steps : *asked);
  }
  EAGLE_RETURN_IF_ERROR(record());
  return settle();
}

StatusOr<Next> DeviceRun::advance() {
  const Clock::time_point turn = Clock::now();
  if (at_ == At::begin) EAGLE_RETURN_IF_ERROR(begin());
  const bool calls = std::any_of(model_.host_steps.begin(), model_.host_steps.end(),
                                 [&](const HostStep& step) { return captured(step) == nullptr; });
  while (true) {
    switch (at_) {
      case At::begin:
      case At::end:
        return Next::done;
      case At::whole_step:
        if (const auto asked = asked_to_stop()) {
          EAGLE_RETURN_IF_ERROR(end(*asked));
          break;
        }
        EAGLE_RETURN_IF_ERROR(has_host_steps_within_ ? begin_step() : pass());
        break;
      case At::within_step: {
        EAGLE_ASSIGN_OR_RETURN(const Next next, step_on());
        if (next != Next::again) return next;
        break;
      }
      case At::calls:
        if (call_due()) return Next::host_call;
        at_ = At::whole_step;
        EAGLE_RETURN_IF_ERROR(settle());
        // The client's part makes a step long enough to be a piece of its own.
        if (at_ != At::end && (calls || Clock::now() - turn >= options_.piece)) return Next::again;
        break;
    }
  }
}

// The step of the run to which the next pass takes every live sample.
std::int64_t DeviceRun::next_target() const {
  std::int64_t most = model_.max_steps;
  const auto at_multiple_of = [&](std::int64_t every) {
    most = steps_ + std::min(every - steps_ % every, most - steps_);
  };
  for (const HostStep& host : model_.host_steps) {
    if (host.every > 1) at_multiple_of(host.every);  // the others are parts of the loop's body
  }
  if (model_.record) at_multiple_of(model_.record->every);
  if (model_.steps_per_pass > 0)
    return std::min(most, steps_ + std::min(model_.steps_per_pass, most - steps_));
  std::int64_t wanted = first_pass_steps;
  if (step_s_ > 0) {
    const double fit = options_.piece.count() / step_s_;
    wanted = static_cast<std::int64_t>(std::clamp(fit, 1.0, static_cast<double>(pass_growth * last_pass_)));
  } else if (options_.piece.count() == 0) {
    wanted = 1;
  }
  return std::min(most, steps_ + std::min(wanted, most - steps_));
}

Status DeviceRun::pass() {
  before_ = steps_;
  const std::int64_t target = next_target();
  std::vector<std::int64_t> limits;
  for (const Body& body : bodies_) {
    // A wish to stop waits for the body in hand.
    const bool brief = step_s_ > 0 ? static_cast<double>(body.steps) * step_s_ <= options_.piece.count()
                                   : body.steps <= first_body_steps;
    limits.push_back(brief || body.steps == 1 ? target : 0);
  }
  EAGLE_RETURN_IF_ERROR(count_live(now_.beside.counts.finished, limits));
  const Clock::time_point begun = Clock::now();
  if (loops_) {
    EAGLE_RETURN_IF_ERROR(loops_->launch(stream_));
    EAGLE_RETURN_IF_ERROR(wait());
    EAGLE_RETURN_IF_ERROR(look());
  } else {
    EAGLE_RETURN_IF_ERROR(loop_on_host(limits));
  }
  const double took = seconds_since(begun);
  const bool cut = was_cut();
  if (cut) EAGLE_RETURN_IF_ERROR(undo());
  const std::int64_t finished = now_.beside.counts.finished;
  live_ = std::max<std::int64_t>(now_.step.live - finished, 0);
  take_counts();
  ++result_.report.launches;
  run::count(shared_.counters->launches);
  last_pass_ = std::max<std::int64_t>(steps_ - before_, 1);
  step_s_ = std::max(took / static_cast<double>(last_pass_), 1e-9);
  if (cut) return end(asked_to_stop().value_or(RunStatus::cancelled));
  EAGLE_RETURN_IF_ERROR(record());
  at_ = At::calls;
  next_host_ = 0;
  return {};
}

Status DeviceRun::loop_on_host(const std::vector<std::int64_t>& limits) {
  EAGLE_RETURN_IF_ERROR(wait());
  EAGLE_RETURN_IF_ERROR(look());
  for (std::size_t loop = 0; loop < bodies_.size(); ++loop) {
    const Body& body = bodies_[loop];
    while (now_.step.live > now_.beside.counts.finished && now_.step.steps <= limits[loop] - body.steps &&
           !was_cut() && !asked_to_stop()) {
      EAGLE_RETURN_IF_ERROR(enqueue(saves_));
      for (const Part& part : body.parts) EAGLE_RETURN_IF_ERROR(enqueue(part));
      EAGLE_RETURN_IF_ERROR(enqueue(body.account));
      EAGLE_RETURN_IF_ERROR(wait());
      EAGLE_RETURN_IF_ERROR(look());
    }
  }
  return {};
}

// ---- steps in which the client has a part

Status DeviceRun::begin_step() {
  at_ = At::within_step;
  before_ = steps_;
  next_part_ = 0;
  EAGLE_RETURN_IF_ERROR(enqueue(saves_));
  return saves_.empty() ? Status() : wait();  // the first part may be the client's
}

StatusOr<Next> DeviceRun::step_on() {
  const Body& body = bodies_.back();
  while (true) {
    if (next_part_ == body.parts.size()) break;
    next_host_ = body.parts[next_part_].host;
    if (next_host_ != none) return Next::host_call;
    EAGLE_RETURN_IF_ERROR(enqueue(body.parts[next_part_++]));
    EAGLE_RETURN_IF_ERROR(wait());
    EAGLE_RETURN_IF_ERROR(look());
    if (!was_cut()) continue;
    EAGLE_RETURN_IF_ERROR(undo());
    take_counts();
    if (count_) result_.report.finished = live_at_start_ - live_;
    EAGLE_RETURN_IF_ERROR(end(asked_to_stop().value_or(RunStatus::cancelled)));
    return Next::again;
  }
  EAGLE_RETURN_IF_ERROR(end_step());
  return Next::again;
}

// The client's part may have written the mask, and so may whoever else has it.
Status DeviceRun::end_step() {
  EAGLE_RETURN_IF_ERROR(count_live(0, {}));
  EAGLE_RETURN_IF_ERROR(enqueue(bodies_.back().account.back()));
  EAGLE_RETURN_IF_ERROR(wait());
  EAGLE_RETURN_IF_ERROR(look());
  take_counts();
  live_ = now_.step.live;
  if (count_) result_.report.finished = live_at_start_ - live_;
  ++result_.report.launches;
  run::count(shared_.counters->launches);
  EAGLE_RETURN_IF_ERROR(record());
  at_ = At::calls;
  next_host_ = 0;
  return {};
}

// ---- between steps

// Where every sample has finished the rows are those of the last step that one took.
Status DeviceRun::record() {
  if (!model_.record) return {};
  const Record& record = *model_.record;
  const std::int64_t steps = live_ > 0 ? steps_ : result_.report.steps;
  const std::int64_t rows = steps / record.every + (record.initial ? 1 : 0);
  if (rows > rows_) {
    for (const Recorded& recorded : recorded_) {
      DeviceNode copy = recorded.copy;
      const std::int64_t row = (rows - 1) % record.rows;
      copy.words[offsetof(run::cuda::CopyWords, destination) / 8] +=
          static_cast<std::uint64_t>(row * recorded.row_bytes);
      EAGLE_RETURN_IF_ERROR(enqueue(copy));
    }
    EAGLE_RETURN_IF_ERROR(stream_.wait());
  }
  rows_ = result_.report.records = rows;
  return {};
}

// Whether a host step that does not come in every step is due after the steps since `before_`. Where every
// sample has finished there is nothing more to look at.
bool DeviceRun::call_due() {
  for (; live_ > 0 && next_host_ < model_.host_steps.size(); ++next_host_) {
    const std::int64_t every = model_.host_steps[next_host_].every;
    if (every > 1 && steps_ / every > before_ / every) return true;
  }
  return false;
}

void DeviceRun::answer(bool stop) {
  stop_wanted_ |= stop;
  ++(at_ == At::within_step ? next_part_ : next_host_);
}

Status DeviceRun::settle() {
  if (live_ == 0 || stop_wanted_) return end(RunStatus::finished);
  return steps_ == model_.max_steps ? end(RunStatus::max_steps) : Status();
}

// The nodes that the samples of a shard gave, by the tree that all hosts have.
Status DeviceRun::keep_reductions() {
  if (result_.report.steps == 0) return {};
  const kernel::FloatEnvironment environment;
  for (std::size_t r = 0; r < reduced_.size(); ++r) {
    const auto holder = std::find_if(scratch_.begin(), scratch_.end(), [&](const DeviceMemory& memory) {
      return memory.address() == reduced_[r].at;
    });
    std::vector<std::byte> values(reduced_[r].bytes);
    EAGLE_RETURN_IF_ERROR(holder->read(values));
    ShardReduction& reduction = result_.report.reductions[r];
    run::Partial partial;
    run::reducer_for({reduction.op, reduction.scalar})
        .append(partial, values.data(), model_.shard->base, model_.samples);
    reduction.nodes.assign(partial.nodes().begin(), partial.nodes().end());
  }
  return {};
}

Status DeviceRun::end(RunStatus status) {
  at_ = At::end;
  EAGLE_RETURN_IF_ERROR(keep_reductions());
  result_.status = status;
  if (live_ > 0) result_.report.ranges = {{model_.samples, steps_}};
  result_.report.wall_s = seconds_since(start_);
  run::count(shared_.counters->runs);
  return {};
}

}  // namespace eagle::step
