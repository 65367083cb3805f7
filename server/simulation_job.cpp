#include "server/simulation_job.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "eagle/v1/run.pb.h"
#include "engine/graph/edges.h"
#include "engine/plane/overlap.h"
#include "server/log_context.h"
#include "server/scratch_memory.h"
#include "server/torn_planes.h"

namespace eagle::server {

StatusOr<std::shared_ptr<SimulationJob>> SimulationJob::enter(
    Executor& executor, const std::shared_ptr<Session>& session, std::uint64_t launch_id,
    std::optional<std::chrono::steady_clock::time_point> deadline, SimulationEvents events) {
  EAGLE_RETURN_IF_ERROR(session->outcomes().check_lost(launch_id));
  std::shared_ptr<SimulationJob> job(new SimulationJob(executor, session, launch_id, std::move(events)));
  job->control_->deadline = deadline;
  EAGLE_RETURN_IF_ERROR(session->enter(job, launch_id));
  return job;
}

std::shared_ptr<SimulationJob> SimulationJob::detached(Executor& executor,
                                                       const std::shared_ptr<Session>& session,
                                                       ResolvedPlanes planes, SimulationEvents events) {
  std::shared_ptr<SimulationJob> job(new SimulationJob(executor, session, 0, std::move(events)));
  job->given_ = std::move(planes);
  return job;
}

void SimulationJob::prepare(Engine& engine, Gpus& gpus, const v1::RunDescription& description) {
  const Status ready = make_ready(engine, gpus, description);
  if (!ready.ok()) refuse(ready);
}

Status SimulationJob::make_ready(Engine& engine, Gpus& gpus, const v1::RunDescription& description) {
  if (!given_) {
    EAGLE_ASSIGN_OR_RETURN(given_, resolve(description, session_->planes()));
  }
  ResolvedPlanes planes = *std::exchange(given_, std::nullopt);
  EAGLE_ASSIGN_OR_RETURN(auto on_device, planes.on_device());
  if (on_device) on_device->account = account_on(gpus, on_device->unit, *session_);
  if (description.host_steps_size() > 0 && !events_.host_call) {
    return {Reason::graph_state, "the model has host steps, which run in the client; use SimulateWithCalls"};
  }
  EAGLE_RETURN_IF_ERROR(session_->tenant()->may_compile());
  EAGLE_ASSIGN_OR_RETURN(simulation_, on_device ? engine.simulate(description, *on_device, control_)
                                                : engine.simulate(description, planes.memory, control_));
  session_->tenant()->note_compiled(simulation_->result().report.build_s);
  EAGLE_RETURN_IF_ERROR(refuse_writes(description, planes));
  planes_ = std::move(planes.planes);
  auto next = planes_.begin();
  for (const v1::PlaneDeclaration& declared : description.planes())
    by_index_.push_back(declared.has_plane() ? (next++)->get() : nullptr);
  for (const v1::HostStep& step : description.host_steps()) {
    if (step.every() > 1 || step.before() >= static_cast<std::uint32_t>(description.model_size()))
      between_steps_.insert(step.node().call());
  }
  const auto self = shared_from_this();
  const graph::Touches& touches = simulation_->touches();
  const std::string device = on_device ? on_device->unit->name() : std::string();
  EAGLE_RETURN_IF_ERROR(executor_.submit(self, {session_->tenant(),
                                                {session_->id(), 0, launch_id_, trace_},
                                                Footprint::of({&touches, 1}, bytes_of(by_index_)),
                                                WorkKind::run,
                                                device}));
  if (control_->cancelled()) executor_.expedite(self);  // while it was being built
  return {};
}

void SimulationJob::cancel() {
  control_->cancel.store(true);
  bool was_parked = false;
  {
    const std::lock_guard lock(mutex_);
    was_parked = std::exchange(parked_, false);
    abandoned_ |= was_parked;
  }
  const auto self = shared_from_this();
  if (was_parked) executor_.resume(self);
  executor_.expedite(self);
}

void SimulationJob::stop(const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = why;
  }
  cancel();
}

bool SimulationJob::ends_at_once() const {
  const std::lock_guard lock(mutex_);
  return !answered_ && !(simulation_ && simulation_->part_way() && !abandoned_);
}

Job::Next SimulationJob::advance() {
  Status failure;
  bool abandoned = false, answered = false, stop = false;
  {
    const std::lock_guard lock(mutex_);
    failure = std::exchange(host_failure_, Status());
    abandoned = abandoned_;
    answered = std::exchange(answered_, false);
    stop = stop_;
  }
  if (failure.ok() && !begun_) failure = check_torn();
  if (!failure.ok()) return finish(failure);
  if (!std::exchange(begun_, true)) note();
  if (abandoned) return finish(without_the_client());
  if (answered) simulation_->answer(stop);
  asked_ = false;
  switch (simulation_->advance()) {
    case step::Simulation::Next::host_call:
      return ask();
    case step::Simulation::Next::again: {
      const step::RunReport& so_far = simulation_->result().report;
      // Pieces of a pass are nobody's business.
      if (!simulation_->part_way()) events_.progress(so_far.steps, so_far.finished);
      return Next::again;
    }
    case step::Simulation::Next::failed:
      return finish(simulation_->failure());
    case step::Simulation::Next::done:
      break;
  }
  const step::RunResult& result = simulation_->result();
  Status stopped;
  {
    const std::lock_guard lock(mutex_);
    stopped = stopped_;
  }
  if (stopped.ok() || result.status != step::RunStatus::cancelled) return finish(result);
  return finish(Status(stopped.reason(), "the run was stopped after " + std::to_string(result.report.steps) +
                                             " whole steps: " + stopped.message()));
}

// Its part of a step may have been half of something; between steps the samples are whole without it.
StatusOr<step::RunResult> SimulationJob::without_the_client() {
  if (!between_steps_.contains(simulation_->call())) {
    return Status(Reason::cancelled, "the run was cancelled while the client had its part of step " +
                                         std::to_string(simulation_->result().report.steps + 1));
  }
  simulation_->answer(false);
  while (!simulation_->ended()) {  // the cancel ends it before its next step
    if (simulation_->advance() == step::Simulation::Next::host_call) simulation_->answer(false);
  }
  if (!simulation_->failure().ok()) return simulation_->failure();
  return simulation_->result();
}

Status SimulationJob::check_torn() const {
  const TornMarks torn = torn_marks(by_index_);
  for (const graph::NamedView& read : simulation_->touches().reads) {
    for (const graph::TornMark& mark : torn.marks) {
      if (plane::overlap(read.view, mark.view).overlaps)
        return torn_read("the model", read.name, torn.what_of(mark.number));
    }
  }
  return {};
}

std::string SimulationJob::mark_torn() const {
  if (!simulation_ || !asked_ || between_steps_.contains(simulation_->call())) return {};
  TornText text;
  for (const graph::NamedView& written : simulation_->touches().writes) {
    Plane* const plane = by_index_[written.view.plane];
    if (plane == nullptr) continue;
    const std::string what = "'" + written.name + "' of a run";
    plane->torn().mark(written.view, what);
    plane->write_down_torn();
    text.add(what);
  }
  return text.text();
}

// What a dead worker was writing is half written. (A run has no graph that could be suspected.)
void SimulationJob::note() {
  session_->note_begun(launch_id_);
  if (session_->ledger() == nullptr) return;
  std::vector<Ledger::Range> written;
  for (const graph::NamedView& view : simulation_->touches().writes) {
    const Plane* const plane = by_index_[view.view.plane];
    if (plane != nullptr) add_range(written, plane->id(), view.view);
  }
  line_ = session_->ledger()->note(session_->id(), {}, written);
}

Job::Next SimulationJob::ask() {
  asked_ = true;
  executor_.park(*this);  // first: once `parked_` is set, whoever cancels resumes the job
  std::uint64_t sequence = 0;
  {
    const std::lock_guard lock(mutex_);
    sequence = ++sequence_;
    parked_ = true;
  }
  const step::RunReport& so_far = simulation_->result().report;
  events_.progress(so_far.steps, so_far.finished);
  const std::shared_ptr<Session> session = session_;  // once asked, another thread may end the run
  events_.host_call(sequence, simulation_->call());
  // Nobody cancels it again: it must not wait for a client that may never answer.
  if (session->ended()) cancel();
  return Next::parked;
}

Status SimulationJob::answer(std::uint64_t sequence, Status result, bool stop, bool cancel) {
  {
    const std::lock_guard lock(mutex_);
    if (abandoned_) return {};
    if (!parked_ || sequence != sequence_) {
      return {Reason::bad_message, "expected the reply to host call " + std::to_string(sequence_) +
                                       ", found one to " + std::to_string(sequence) +
                                       ", which is not open; reply to each call once"};
    }
    parked_ = false;
    answered_ = true;
    stop_ = stop;
    host_failure_ = std::move(result);
  }
  if (cancel) control_->cancel.store(true);
  executor_.resume(shared_from_this());
  return {};
}

// As for a launch: everything is given back before anybody hears of the end.
Job::Next SimulationJob::finish(StatusOr<step::RunResult> outcome) {
  if (!outcome.ok()) outcome = Status(outcome.status().reason(), outcome.status().message() + mark_torn());
  const StatusOr<step::RunResult> kept = std::move(outcome);
  ends_with(kept.status().code());
  const LogScope scope({session_->id(), 0, launch_id_, trace_});
  spdlog::debug("run {}", kept.ok() ? step::name_of(kept->status) : info(kept.status().reason()).wire_name);
  simulation_.reset();
  line_.cross_out();
  executor_.discard(std::make_shared<PlaneStore::Planes>(std::move(planes_)));
  session_->leave(this);
  session_.reset();
  const SimulationEvents events = std::exchange(events_, {});
  events.done(kept);
  return Next::done;
}

}  // namespace eagle::server
