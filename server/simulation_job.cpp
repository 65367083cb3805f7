#include "server/simulation_job.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "eagle/v1/run.pb.h"

namespace eagle::server {

StatusOr<std::shared_ptr<SimulationJob>> SimulationJob::enter(
    Executor& executor, const std::shared_ptr<Session>& session, std::uint64_t launch_id,
    std::optional<std::chrono::steady_clock::time_point> deadline, SimulationEvents events) {
  std::shared_ptr<SimulationJob> job(new SimulationJob(executor, session, std::move(events)));
  job->control_->deadline = deadline;
  EAGLE_RETURN_IF_ERROR(session->enter(job, launch_id));
  return job;
}

void SimulationJob::prepare(Engine& engine, const v1::RunDescription& description) {
  const Status ready = make_ready(engine, description);
  if (!ready.ok()) refuse(ready);
}

Status SimulationJob::make_ready(Engine& engine, const v1::RunDescription& description) {
  if (control_->cancelled()) return {Reason::cancelled, "the run was cancelled before it began"};
  EAGLE_ASSIGN_OR_RETURN(ResolvedPlanes planes, resolve(description, session_->planes()));
  EAGLE_ASSIGN_OR_RETURN(simulation_, engine.simulate(description, planes.memory, control_));
  planes_ = std::move(planes.planes);
  const auto self = shared_from_this();
  EAGLE_RETURN_IF_ERROR(executor_.submit(self));
  if (control_->cancelled()) executor_.expedite(self);  // while it was being built
  return {};
}

void SimulationJob::cancel() {
  control_->cancel.store(true);
  executor_.expedite(shared_from_this());
}

Job::Next SimulationJob::advance() {
  if (simulation_->advance()) return finish(simulation_->result());
  const step::RunReport& so_far = simulation_->result().report;
  events_.progress(so_far.steps, so_far.finished);
  return Next::again;
}

// As for a launch: everything is given back before anybody hears of the end.
Job::Next SimulationJob::finish(const StatusOr<step::RunResult>& outcome) {
  const StatusOr<step::RunResult> kept = outcome;  // it may live in what goes now
  spdlog::debug("session={:016x} run {}", session_->id(),
                kept.ok() ? step::name_of(kept->status) : info(kept.status().reason()).wire_name);
  simulation_.reset();
  executor_.discard(std::make_shared<PlaneStore::Planes>(std::move(planes_)));
  session_->leave(this);
  session_.reset();
  const SimulationEvents events = std::exchange(events_, {});
  events.done(kept);
  return Next::done;
}

}  // namespace eagle::server
