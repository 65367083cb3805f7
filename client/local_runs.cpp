#include "client/local_runs.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "client/local_enqueued.h"
#include "eagle/v1/run.pb.h"
#include "engine/graph/wire.h"
#include "engine/kernel/names.h"
#include "engine/step/result_message.h"

namespace eagle {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t most_runs = 64;
constexpr std::uint32_t name_bytes = 256;

Status unknown_run(std::uint64_t id) {
  return {Reason::unknown_run,
          "there is no run " + std::to_string(id) +
              " in this session: its lease is over, its planes were fetched, or it never was"};
}

StatusOr<std::vector<graph::NamedView>> read_views(
    const google::protobuf::RepeatedPtrField<v1::PlaneDeclaration>& planes,
    const google::protobuf::RepeatedPtrField<v1::NamedView>& views) {
  std::vector<graph::Plane> declared;
  for (const v1::PlaneDeclaration& plane : planes) {
    EAGLE_ASSIGN_OR_RETURN(graph::Plane read, graph::read_plane(plane, "planes"));
    declared.push_back(std::move(read));
  }
  std::vector<graph::NamedView> read;
  for (const v1::NamedView& view : views) {
    EAGLE_ASSIGN_OR_RETURN(graph::NamedView named,
                           graph::read_named_view(view, declared, "planes", name_bytes));
    read.push_back(std::move(named));
  }
  return read;
}

}  // namespace

struct LocalRuns::Run {
  std::uint64_t id = 0;
  std::string name, mask;
  std::int64_t max_steps = 0;
  Clock::time_point until;
  std::vector<graph::NamedView> planes;
  Bound bound;
  std::shared_ptr<run::Control> control = std::make_shared<run::Control>();
  std::unique_ptr<step::Simulation> simulation;  // of the thread
  std::atomic<std::int64_t> steps = 0, finished = 0;
  std::atomic<bool> ended = false;  // the outcome is there
  step::RunResult outcome;
  Status failure;
  std::jthread thread;  // last: ends before what it uses

  ~Run() { control->cancel = true; }
};

LocalRuns::~LocalRuns() { close(); }

StatusOr<std::uint64_t> LocalRuns::submit(const v1::SubmitRequest& request,
                                          std::span<const run::PlaneMemory> private_planes,
                                          std::vector<std::shared_ptr<const void>> keep_alive) {
  if (!(request.lease_s() > 0) || request.lease_s() > 1e9)
    return Status(Reason::bad_value,
                  "lease: expected seconds above 0, found " + std::to_string(request.lease_s()));
  auto run = std::make_shared<Run>();
  EAGLE_ASSIGN_OR_RETURN(run->planes, read_views(request.run().planes(), request.planes()));
  EAGLE_ASSIGN_OR_RETURN(run->bound, bind_(request.run().planes(), private_planes));
  std::move(keep_alive.begin(), keep_alive.end(), std::back_inserter(run->bound.keep_alive));
  EAGLE_ASSIGN_OR_RETURN(const auto on_device, planes_on_device(run->bound.planes));
  if (on_device) EAGLE_RETURN_IF_ERROR(LocalEnqueued::settle(touches_of(on_device->memory)));
  EAGLE_ASSIGN_OR_RETURN(run->simulation,
                         on_device ? engine_.simulate(request.run(), *on_device, run->control)
                                   : engine_.simulate(request.run(), run->bound.memory, run->control));
  run->name = request.name();
  run->mask = request.mask();
  run->max_steps = request.run().max_steps();
  run->until = Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(request.lease_s()));
  static_cast<void>(find(0));  // those whose lease is over make room
  const std::scoped_lock lock(mutex_);
  if (runs_.size() >= most_runs) {
    return Status(Reason::quota, "this session keeps " + std::to_string(most_runs) +
                                     " runs, which is its limit; fetch or cancel some");
  }
  run->id = ++last_;
  runs_[run->id] = run;
  run->thread = std::jthread([mine = run.get()] {
    step::Simulation& simulation = *mine->simulation;
    while (!simulation.ended()) {
      static_cast<void>(simulation.advance());
      mine->steps = simulation.result().report.steps;
      mine->finished = simulation.result().report.finished;
    }
    mine->failure = simulation.failure();
    mine->outcome = simulation.result();
    mine->ended.store(true, std::memory_order_release);
  });
  return run->id;
}

std::shared_ptr<LocalRuns::Run> LocalRuns::find(std::uint64_t id) {
  std::vector<std::shared_ptr<Run>> over;  // they end after the lock
  const std::scoped_lock lock(mutex_);
  for (auto it = runs_.begin(); it != runs_.end();) {
    if (it->second->until > Clock::now()) {
      ++it;
      continue;
    }
    over.push_back(std::move(it->second));
    it = runs_.erase(it);
  }
  const auto found = runs_.find(id);
  return found == runs_.end() ? nullptr : found->second;
}

void LocalRuns::describe(Run& run, v1::KeptRun& reply) {
  reply.set_run(run.id);
  reply.set_name(run.name);
  reply.set_max_steps(run.max_steps);
  reply.set_mask(run.mask);
  reply.set_lease_s(std::chrono::duration<double>(run.until - Clock::now()).count());
  for (const graph::NamedView& plane : run.planes) {
    v1::KeptPlane& out = *reply.add_planes();
    out.set_name(plane.name);
    out.set_dtype(static_cast<v1::DType>(plane.view.dtype));
    out.mutable_shape()->Add(plane.view.shape.begin(), plane.view.shape.end());
    if (const auto* there = run.bound.planes[plane.view.plane].on_gpu())
      out.set_device(there->unit()->name());
  }
  reply.set_ended(run.ended.load(std::memory_order_acquire));
  if (reply.ended() && !run.failure.ok()) {
    reply.set_reason(std::string(info(run.failure.reason()).wire_name));
    reply.set_error(run.failure.message());
  } else if (reply.ended()) {
    step::describe(run.outcome, *reply.mutable_result());
  }
  reply.mutable_progress()->set_steps(run.steps);
  reply.mutable_progress()->set_finished(run.finished);
}

Status LocalRuns::get(std::uint64_t id, v1::KeptRun& reply) {
  const auto run = find(id);
  if (!run) return unknown_run(id);
  describe(*run, reply);
  return {};
}

Status LocalRuns::list(v1::ListRunsReply& reply) {
  static_cast<void>(find(0));
  const std::scoped_lock lock(mutex_);
  for (const auto& [id, run] : runs_) describe(*run, *reply.add_runs());
  return {};
}

Status LocalRuns::fetch(const v1::FetchRunRequest& request,
                        std::span<const run::PlaneMemory> private_planes) {
  const auto run = find(request.run());
  if (!run) return unknown_run(request.run());
  if (!run->ended.load(std::memory_order_acquire))
    return {Reason::graph_state,
            "run " + std::to_string(run->id) + " still computes; wait for its end, or cancel it"};
  EAGLE_ASSIGN_OR_RETURN(const Bound own, bind_(request.planes(), private_planes));
  EAGLE_ASSIGN_OR_RETURN(const std::vector<graph::NamedView> into,
                         read_views(request.planes(), request.into()));
  for (const graph::NamedView& to : into) {
    const auto from = std::find_if(run->planes.begin(), run->planes.end(),
                                   [&](const auto& plane) { return plane.name == to.name; });
    if (from == run->planes.end()) {
      return {Reason::unknown_name,
              "run " + std::to_string(run->id) + " has no plane " + kernel::quote_name(to.name)};
    }
    if (from->view.dtype != to.view.dtype || from->view.item_bytes != to.view.item_bytes ||
        from->view.shape != to.view.shape)
      return {Reason::wrong_shape, "plane " + kernel::quote_name(to.name) + ": expected " +
                                       plane::to_string(from->view) + ", found " + plane::to_string(to.view)};
    EAGLE_RETURN_IF_ERROR(copy_between(from->view, run->bound.planes[from->view.plane],
                                       run->bound.memory[from->view.plane].data, to.view,
                                       own.planes[to.view.plane], own.memory[to.view.plane].data));
  }
  const std::scoped_lock lock(mutex_);
  runs_.erase(run->id);
  return {};
}

Status LocalRuns::cancel(std::uint64_t id) {
  const auto run = find(id);
  if (!run) return unknown_run(id);
  run->control->cancel = true;
  return {};
}

void LocalRuns::close() {
  std::map<std::uint64_t, std::shared_ptr<Run>> all;
  {
    const std::scoped_lock lock(mutex_);
    all.swap(runs_);
  }
}

}  // namespace eagle
