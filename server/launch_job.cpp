#include "server/launch_job.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "engine/base/clock.h"
#include "server/log_context.h"

namespace eagle::server {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

LaunchJob::LaunchJob(Token /*token*/, Executor& executor, std::shared_ptr<Session> session,
                     const LaunchRequest& request)
    : executor_(executor), request_(request), trace_(request.trace), session_(std::move(session)) {}

Status LaunchJob::enter(bool can_call_host) {
  EAGLE_ASSIGN_OR_RETURN(Session::Launching found,
                         session_->enter(shared_from_this(), request_.launch_id, request_.graph));
  Status refused;
  if (found.graph->has_host_nodes() && !can_call_host) {
    refused = {Reason::graph_state,
               "graph " + std::to_string(request_.graph) +
                   " has host nodes, which run in the client; launch it with LaunchWithCalls"};
  }
  if (refused.ok()) refused = found.graph->check_planes();
  if (refused.ok() && !found.graph->begin_launch()) refused = running(request_.graph);
  if (!refused.ok()) {
    session_->leave(this);
    return refused;
  }
  graph_ = std::move(found.graph);
  if (!trace_.given()) trace_ = found.trace;
  return {};
}

std::shared_ptr<LaunchJob> LaunchJob::start(Executor& executor, const std::shared_ptr<Session>& session,
                                            const LaunchRequest& request,
                                            std::optional<Clock::time_point> deadline, LaunchEvents events) {
  bool admitted = false;
  const auto refuse = [&](const Status& status) {
    count(session->tenant()->meter().launches[static_cast<std::size_t>(status.code())]);
    if (admitted) {
      tell(*session, request, events, status, false);
    } else {
      events.done(status);
    }
    return nullptr;
  };
  if (request.count < 0) {
    return refuse(Status(Reason::bad_value,
                         "expected a launch count of at least 0, found " + std::to_string(request.count)));
  }
  if (request.launch_id != 0) {
    const auto admission =
        session->outcomes().admit(request, events.done, {events.enqueued, events.asked_for_later});
    if (!admission.ok()) return refuse(admission.status());
    if (*admission == LaunchOutcomes::Admission::again) return nullptr;
  }
  admitted = true;
  const auto job = std::make_shared<LaunchJob>(Token(), executor, session, request);
  if (const Status entered = job->enter(static_cast<bool>(events.host_call)); !entered.ok())
    return refuse(entered);
  job->control_.deadline = deadline;
  job->events_ = std::move(events);
  // The replay goes with the job, whose control it looks at.
  const std::shared_ptr<const run::Control> control(std::shared_ptr<const void>(), &job->control_);
  job->replay_.emplace(job->graph_->built(), request.count, control);
  const Status refused = executor.submit(job, {session->tenant(),
                                               {session->id(), request.graph, request.launch_id, job->trace_},
                                               job->graph_->footprint(),
                                               WorkKind::launch,
                                               job->graph_->built().backend()});
  if (!refused.ok()) {
    count(session->tenant()->meter().launches[static_cast<std::size_t>(refused.code())]);
    static_cast<void>(job->finish(refused));
    return nullptr;
  }
  if (job->control_.cancelled()) executor.expedite(job);  // the session ended before it was queued
  return job;
}

Status LaunchJob::stop_status() const {
  if (!control_.cancelled() && !control_.expired()) return {};
  const std::string how_far = "; " + std::to_string(replay_->launches()) + " of " +
                              std::to_string(request_.count) + " replays were whole";
  if (control_.expired()) return {Reason::deadline, "the deadline of the launch passed" + how_far};
  const std::lock_guard lock(mutex_);
  if (!stopped_.ok()) return {stopped_.reason(), "the launch was stopped: " + stopped_.message() + how_far};
  return {Reason::cancelled, "the launch was cancelled" + how_far};
}

Job::Next LaunchJob::advance() {
  Status failure;
  bool unanswered = false;
  if (has_asked_) {
    const std::lock_guard lock(mutex_);
    failure = std::exchange(host_failure_, Status());
    unanswered = unanswered_;
  }
  // A launch that has begun looks for itself whether it may go on: a replay whose last host call was answered
  // is whole, and counts.
  if (failure.ok() && (!began_ || unanswered)) failure = stop_status();
  if (failure.ok() && !began_) failure = graph_->check_torn();
  if (!failure.ok()) return finish(failure);
  if (!began_) {
    began_ = turn_began();
    session_->note_begun(request_.launch_id);
  }
  graph_->computes(true);
  const auto next = replay_->advance();
  graph_->computes(false);
  if (!next.ok()) {
    const Status stopped = stop_status();
    return finish(stopped.ok() ? next.status() : stopped);
  }
  switch (*next) {
    case run::Replay::Next::host_call:
      return ask();
    case run::Replay::Next::again:
      return Next::again;
    case run::Replay::Next::done:
      break;
  }
  return finish(report());
}

Job::Next LaunchJob::ask() {
  has_asked_ = true;
  executor_.park(*this);  // first: once `parked_` is set, whoever cancels resumes the job
  std::uint64_t sequence = 0;
  {
    const std::lock_guard lock(mutex_);
    sequence = ++sequence_;
    parked_ = unanswered_ = true;
  }
  events_.host_call(sequence, replay_->call());
  // A cancel that came before `parked_` was set has resumed nothing.
  if (!control_.cancelled()) return Next::parked;
  const std::lock_guard lock(mutex_);
  return std::exchange(parked_, false) ? Next::again : Next::parked;
}

Status LaunchJob::answer(std::uint64_t sequence, Status result, bool cancel) {
  {
    const std::lock_guard lock(mutex_);
    if (control_.cancelled()) return {};
    if (!parked_ || sequence != sequence_) {
      return {Reason::bad_message, "expected the reply to host call " + std::to_string(sequence_) +
                                       ", found one to " + std::to_string(sequence) +
                                       ", which is not open; reply to each call once"};
    }
    parked_ = unanswered_ = false;
    host_failure_ = std::move(result);
    if (cancel) control_.cancel.store(true);
  }
  const auto self = shared_from_this();
  executor_.resume(self);
  if (control_.cancelled()) executor_.expedite(self);  // just now, when it was neither parked nor queued
  return {};
}

void LaunchJob::cancel() {
  control_.cancel.store(true);
  bool was_parked = false;
  {
    const std::lock_guard lock(mutex_);
    was_parked = std::exchange(parked_, false);
  }
  const auto self = shared_from_this();
  if (was_parked) executor_.resume(self);
  executor_.expedite(self);
}

void LaunchJob::stop(const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = why;
  }
  cancel();
}

LaunchReport LaunchJob::report() const {
  LaunchReport report;
  report.launches = replay_->launches();
  report.threads = graph_->built().threads();
  report.wall_s = seconds_since(*began_);
  report.iterations = replay_->iterations();
  report.counts = replay_->counts();
  return report;
}

// Whoever hears of the end may launch the graph again or look at the planes at once: so everything is given
// back first.
Job::Next LaunchJob::finish(LaunchOutcome outcome) {
  const std::int64_t whole = replay_->launches();
  if (whole > 0) graph_->note_whole_replay();
  if (!outcome.ok() && replay_->part_way()) {
    const Status failure = outcome.status();
    outcome = Status(failure.reason(), failure.message() + graph_->mark_torn());
  }
  ends_with(outcome.ok() ? Code::ok : outcome.status().code());
  if (spdlog::should_log(spdlog::level::debug)) {
    const LogScope scope({session_->id(), request_.graph, request_.launch_id, trace_});
    spdlog::debug("launched replays={} of {} {}", whole, request_.count,
                  outcome.ok() ? "OK" : info(outcome.status().reason()).wire_name);
  }
  replay_.reset();
  graph_->end_launch(whole);
  // The client gave the graph up meanwhile: what it holds may take long to free.
  if (graph_.use_count() == 1) executor_.discard(std::move(graph_));
  graph_.reset();
  session_->leave(this);
  const std::shared_ptr<Session> session = std::move(session_);
  const LaunchEvents events = std::exchange(events_, {});
  // Where the next worker is to have it, nobody will ask this one.
  const bool asked_for = events.asked_for_later && outcome.status().reason() != Reason::shutting_down;
  tell(*session, request_, events, outcome, began_ || asked_for);
  return Next::done;
}

// Of a launch with an id the outcomes tell whoever asked, its caller among them.
void LaunchJob::tell(Session& session, const LaunchRequest& request, const LaunchEvents& events,
                     const LaunchOutcome& outcome, bool ran) {
  if (request.launch_id == 0) return events.done(outcome);
  session.outcomes().settle(request.launch_id, outcome, ran);
}

}  // namespace eagle::server
