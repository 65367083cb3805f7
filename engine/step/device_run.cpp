#include "engine/step/device_run.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "engine/base/clock.h"
#include "engine/run/cuda/device_nodes.h"

namespace eagle::step {

using run::cuda::Beside;
using run::cuda::DeviceExec;
using run::cuda::DeviceMemory;
using run::cuda::DeviceNode;
using run::cuda::StepState;
using run::cuda::StepWords;
namespace api = run::cuda::api;

namespace {

std::vector<std::uint64_t> words_of(const StepWords& words) {
  std::vector<std::uint64_t> all(sizeof words / 8);
  std::memcpy(all.data(), &words, sizeof words);
  return all;
}

Status check(const Model& model) {
  const auto refused = [](const std::string& what) {
    return Status(Reason::bad_value,
                  "the run has " + what + ", which a run on a GPU has not; run it on the CPU");
  };
  if (!model.host_steps.empty()) return refused("callables of the client between its steps");
  if (model.record) return refused("planes that are recorded");
  if (model.shard) return refused("a shard of a batch");
  return {};
}

}  // namespace

// ---- building

StatusOr<std::unique_ptr<DeviceRun>> DeviceRun::build(run::cuda::DeviceModules& modules, const Model& model,
                                                      const Options& options) {
  EAGLE_RETURN_IF_ERROR(check(model));
  EAGLE_RETURN_IF_ERROR(modules.device()->driver().graphs());
  std::unique_ptr<DeviceRun> made(new DeviceRun());
  made->device_ = modules.device();
  made->samples_ = model.samples;
  made->max_steps_ = model.max_steps;
  EAGLE_RETURN_IF_ERROR(made->make_memory(model));
  EAGLE_ASSIGN_OR_RETURN(made->stream_, run::cuda::DeviceStream::create(made->device_));
  EAGLE_RETURN_IF_ERROR(made->make_bodies(modules, model, options.fused_steps));
  const Status& driver = made->device_->driver().conditionals();
  if (options.conditionals && driver.ok()) {
    made->schedule_ = "cuda_graph";
    EAGLE_RETURN_IF_ERROR(made->make_loops());
    return made;
  }
  made->schedule_ = "host_loop: " + (driver.ok() ? "conditional nodes are switched off" : driver.message());
  for (Body& body : made->bodies_) {
    EAGLE_ASSIGN_OR_RETURN(DeviceExec exec, DeviceExec::create(made->device_));
    EAGLE_RETURN_IF_ERROR(made->add_body(exec, exec.graph(), body, {}).status());
    EAGLE_RETURN_IF_ERROR(exec.instantiate());
    body.exec.emplace(std::move(exec));
  }
  return made;
}

Status DeviceRun::make_memory(const Model& model) {
  for (const graph::Plane& plane : model.planes) {
    EAGLE_ASSIGN_OR_RETURN(DeviceMemory memory, DeviceMemory::create(device_, plane.bytes));
    EAGLE_RETURN_IF_ERROR(memory.fill(0));
    planes_.push_back(std::move(memory));
  }
  EAGLE_ASSIGN_OR_RETURN(beside_, DeviceMemory::create(device_, sizeof(Beside)));
  EAGLE_RETURN_IF_ERROR(beside_.fill(0));
  EAGLE_ASSIGN_OR_RETURN(state_, DeviceMemory::create(device_, sizeof(StepState)));
  return state_.fill(0);
}

Status DeviceRun::make_bodies(run::cuda::DeviceModules& modules, const Model& model,
                              std::int64_t fused_steps) {
  const bool fused = model.kernels.size() == 1 && !model.mixes && !model.kernels[0].kernel->shares();
  mode_ = name_of(fused ? Mode::fused : Mode::stepwise);
  const bool sets = device_->driver().conditionals().ok();
  run::cuda::DeviceNodes nodes(modules, beside_.address());
  nodes.first_step_at(state_.address() + offsetof(StepState, steps));
  std::vector<api::DevicePointer> addresses;
  for (const DeviceMemory& plane : planes_) addresses.push_back(plane.address());
  std::vector<std::int64_t> sizes = {1};
  if (fused && fused_steps > 1 && model.max_steps > 1)
    sizes.insert(sizes.begin(), std::min(fused_steps, model.max_steps));
  for (const std::int64_t steps : sizes) {
    Body& body = bodies_.emplace_back();
    body.steps = steps;
    for (const StepKernel& part : model.kernels) {
      EAGLE_ASSIGN_OR_RETURN(std::vector<DeviceNode> chain, nodes.launch(part.kernel, part.launch, steps));
      for (DeviceNode& node : chain) {
        node.place(addresses);
        body.kernels.push_back(std::move(node));
      }
    }
    StepWords words;
    words.state = state_.address();
    words.counts = beside_.address() + offsetof(Beside, counts);
    words.taken = words.next = steps;
    words.most = max_steps_;
    EAGLE_ASSIGN_OR_RETURN(body.account,
                           nodes.routine(run::cuda::step_ptx(nodes.arch(), sets), words_of(words)));
  }
  if (model.mask != none) {
    const plane::View& mask = model.columns[model.mask].view;
    EAGLE_ASSIGN_OR_RETURN(count_,
                           nodes.routine(run::cuda::count_zeros_ptx(nodes.arch()),
                                         {static_cast<std::uint64_t>(samples_),
                                          addresses[mask.plane] + static_cast<std::uint64_t>(mask.offset),
                                          state_.address() + offsetof(StepState, live)},
                                         std::max<std::int64_t>(samples_, 2)));
  }
  scratch_ = nodes.take_scratch();
  return {};
}

StatusOr<api::GraphNode> DeviceRun::add_body(const DeviceExec& exec, api::Graph into, const Body& body,
                                             std::vector<api::GraphNode> before) {
  for (const DeviceNode& node : body.kernels) {
    EAGLE_ASSIGN_OR_RETURN(const api::GraphNode added, exec.add(into, node, before));
    before = {added};
  }
  return exec.add(into, body.account, before);
}

// One loop behind the other: bodies of many steps while they fit, then of one.
Status DeviceRun::make_loops() {
  EAGLE_ASSIGN_OR_RETURN(DeviceExec exec, DeviceExec::create(device_));
  std::vector<api::GraphNode> before;
  for (Body& body : bodies_) {
    EAGLE_ASSIGN_OR_RETURN(const std::uint64_t handle, exec.conditional(exec.graph()));
    body.account.words[offsetof(StepWords, handle) / 8] = handle;
    DeviceNode enter = body.account;
    enter.words[offsetof(StepWords, taken) / 8] = 0;
    EAGLE_ASSIGN_OR_RETURN(const api::GraphNode entered, exec.add(exec.graph(), enter, before));
    api::Graph inside = nullptr;
    EAGLE_ASSIGN_OR_RETURN(const api::GraphNode loop,
                           exec.add(exec.graph(), api::conditional_while, handle, {&entered, 1}, inside));
    EAGLE_RETURN_IF_ERROR(add_body(exec, inside, body, {}).status());
    before = {loop};
  }
  EAGLE_RETURN_IF_ERROR(exec.instantiate());
  loops_.emplace(std::move(exec));
  return {};
}

// ---- running

Status DeviceRun::write(std::uint32_t plane, std::span<const std::byte> from) const {
  return planes_.at(plane).write(from);
}
Status DeviceRun::read(std::uint32_t plane, std::span<std::byte> to) const {
  return planes_.at(plane).read(to);
}

Status DeviceRun::cancel() const {
  const std::int64_t set = 1;
  return state_.write(std::as_bytes(std::span(&set, 1)), offsetof(StepState, cancel));
}

StatusOr<StepState> DeviceRun::state() const {
  StepState found;
  EAGLE_RETURN_IF_ERROR(state_.read(std::as_writable_bytes(std::span(&found, 1))));
  return found;
}

// Sets `live`, of which nobody waits for the end.
Status DeviceRun::count_live() const {
  StepState begin;
  if (!count_) begin.live = samples_;
  // Not the wish to end, which may have come before.
  EAGLE_RETURN_IF_ERROR(state_.write(std::as_bytes(std::span(&begin, 1)).first(offsetof(StepState, cancel))));
  EAGLE_RETURN_IF_ERROR(beside_.fill(0));
  if (!count_ || samples_ == 0) return {};
  return stream_.launch(*count_->module, count_->grid.blocks, count_->grid.threads, count_->words);
}

Status DeviceRun::loop_on_host() {
  EAGLE_RETURN_IF_ERROR(stream_.wait());
  for (const Body& body : bodies_) {
    while (true) {
      EAGLE_ASSIGN_OR_RETURN(const StepState now, state());
      std::int64_t finished = 0;
      EAGLE_RETURN_IF_ERROR(
          beside_.read(std::as_writable_bytes(std::span(&finished, 1)),
                       offsetof(Beside, counts) + offsetof(codegen::DeviceCounts, finished)));
      if (now.cancel != 0 || now.live <= finished || now.steps > max_steps_ - body.steps) break;
      EAGLE_RETURN_IF_ERROR(body.exec->launch(stream_));
      EAGLE_RETURN_IF_ERROR(stream_.wait());
    }
  }
  return {};
}

StatusOr<RunResult> DeviceRun::run() {
  const auto begun = std::chrono::steady_clock::now();
  EAGLE_RETURN_IF_ERROR(count_live());
  if (loops_) {
    EAGLE_RETURN_IF_ERROR(loops_->launch(stream_));
    EAGLE_RETURN_IF_ERROR(stream_.wait());
  } else {
    EAGLE_RETURN_IF_ERROR(loop_on_host());
  }
  EAGLE_ASSIGN_OR_RETURN(const StepState end, state());
  EAGLE_RETURN_IF_ERROR(state_.fill(0));
  codegen::DeviceCounts counts;
  EAGLE_RETURN_IF_ERROR(
      beside_.read(std::as_writable_bytes(std::span(&counts, 1)), offsetof(Beside, counts)));

  RunResult result;
  const bool live = end.live > counts.finished;
  result.status = !live                     ? RunStatus::finished
                  : end.steps == max_steps_ ? RunStatus::max_steps
                                            : RunStatus::cancelled;
  RunReport& report = result.report;
  report.samples = samples_;
  report.finished = counts.finished;
  report.launches = end.bodies;
  report.steps = end.last_step;
  report.counts.clamped = counts.clamped;
  report.counts.zero_divisions = counts.zero_divisions;
  report.counts.dropped = counts.dropped;
  report.wall_s = seconds_since(begun);
  report.mode = mode_;
  report.fused_steps = end.bodies == 0 ? 0 : bodies_.front().steps;
  if (live) report.ranges = {{samples_, end.steps}};
  return result;
}

}  // namespace eagle::step
