#include "server/launch_job.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/run/host.h"

namespace eagle::server {
namespace {

using Clock = std::chrono::steady_clock;

// How long a launch of many replays keeps the thread before it gives way.
constexpr double turn_s = 0.01;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The graph of a launch, taken: nobody else launches it until `end_launch`.
StatusOr<std::shared_ptr<LoadedGraph>> take_graph(const Session& session, const LaunchRequest& request,
                                                  bool can_call_host) {
  EAGLE_ASSIGN_OR_RETURN(std::shared_ptr<LoadedGraph> graph, session.graph(request.graph));
  if (graph->has_host_nodes() && !can_call_host) {
    return Status(Reason::graph_state,
                  "graph " + std::to_string(request.graph) +
                      " has host nodes, which run in the client; launch it with LaunchWithCalls");
  }
  EAGLE_RETURN_IF_ERROR(graph->check_planes());
  if (!graph->begin_launch()) {
    return Status(Reason::busy, "graph " + std::to_string(request.graph) +
                                    " is running another launch; wait for it, or build the graph twice");
  }
  return graph;
}

}  // namespace

LaunchJob::LaunchJob(Executor& executor, std::shared_ptr<Session> session, std::shared_ptr<LoadedGraph> graph,
                     const LaunchRequest& request)
    : executor_(executor),
      request_(request),
      control_(std::make_shared<run::Control>()),
      session_(std::move(session)),
      graph_(std::move(graph)) {}

std::shared_ptr<LaunchJob> LaunchJob::start(Executor& executor, const std::shared_ptr<Session>& session,
                                            const LaunchRequest& request,
                                            std::optional<Clock::time_point> deadline, LaunchEvents events) {
  if (request.count < 0) {
    events.done(Status(Reason::bad_value,
                       "expected a launch count of at least 0, found " + std::to_string(request.count)));
    return nullptr;
  }
  if (request.launch_id != 0) {
    const auto admission = session->outcomes().admit(request, events.done);
    if (!admission.ok()) events.done(admission.status());
    if (!admission.ok() || *admission == LaunchOutcomes::Admission::again) return nullptr;
    // From here on the outcomes tell whoever asked, this caller among them.
    events.done = [session, id = request.launch_id](const LaunchOutcome& outcome) {
      session->outcomes().settle(id, outcome, false);
    };
  }
  auto graph = take_graph(*session, request, events.host_call != nullptr);
  if (!graph.ok()) {
    events.done(graph.status());
    return nullptr;
  }
  std::shared_ptr<LaunchJob> job(new LaunchJob(executor, session, *std::move(graph), request));
  job->control_->deadline = deadline;
  job->events_ = std::move(events);
  job->next_chunk();
  Status refused = session->enter(job, request.launch_id);
  if (refused.ok()) refused = executor.submit(job);
  if (refused.ok()) return job;
  static_cast<void>(job->finish(refused));
  return nullptr;
}

void LaunchJob::next_chunk() {
  done_before_chunk_ = whole_replays();
  const std::int64_t left = request_.count - done_before_chunk_;
  replay_.emplace(graph_->built(), std::min(chunk_, left), control_);
}

std::int64_t LaunchJob::whole_replays() const {
  return done_before_chunk_ + (replay_ ? replay_->launches() : 0);
}

Status LaunchJob::stop_status() const {
  if (!control_->cancelled() && !control_->expired()) return {};
  const std::string how_far = "; " + std::to_string(whole_replays()) + " of " +
                              std::to_string(request_.count) + " replays were whole";
  if (control_->expired()) return {Reason::deadline, "the deadline of the launch passed" + how_far};
  return {Reason::cancelled, "the launch was cancelled" + how_far};
}

Job::Next LaunchJob::advance() {
  Status failure;
  {
    const std::lock_guard lock(mutex_);
    failure = std::exchange(host_failure_, Status());
  }
  if (failure.ok()) failure = stop_status();
  if (!failure.ok()) return finish(failure);
  const Clock::time_point turn = Clock::now();
  if (!began_) began_ = turn;
  const auto next = replay_->advance();
  if (!next.ok()) {
    const Status stopped = stop_status();
    return finish(stopped.ok() ? next.status() : stopped);
  }
  if (*next == run::Replay::Next::host_call) return ask();
  if (whole_replays() == request_.count) return finish(report());
  const double factor = turn_s / std::max(seconds_since(turn), 1e-9);
  chunk_ = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(chunk_) * std::clamp(factor, 0.1, 10.0)));
  next_chunk();
  return Next::again;
}

Job::Next LaunchJob::ask() {
  std::uint64_t sequence = 0;
  {
    const std::lock_guard lock(mutex_);
    sequence = ++sequence_;
    parked_ = true;
  }
  events_.host_call(sequence, replay_->call());
  // A cancel that came before `parked_` was set has resumed nothing.
  if (!control_->cancelled()) return Next::parked;
  const std::lock_guard lock(mutex_);
  return std::exchange(parked_, false) ? Next::again : Next::parked;
}

Status LaunchJob::answer(std::uint64_t sequence, Status result) {
  {
    const std::lock_guard lock(mutex_);
    if (!parked_ || sequence != sequence_) {
      return {Reason::bad_message, "expected the reply to host call " + std::to_string(sequence_) +
                                       ", found one to " + std::to_string(sequence) +
                                       ", which is not open; reply to each call once"};
    }
    parked_ = false;
    host_failure_ = std::move(result);
  }
  executor_.resume(shared_from_this());
  return {};
}

void LaunchJob::cancel() {
  control_->cancel.store(true);
  {
    const std::lock_guard lock(mutex_);
    if (!parked_) return;
    parked_ = false;
  }
  executor_.resume(shared_from_this());
}

LaunchReport LaunchJob::report() const {
  LaunchReport report;
  report.host = run::this_host();
  report.launches = whole_replays();
  report.threads = graph_->built().threads();
  report.wall_s = seconds_since(*began_);
  report.iterations = replay_->iterations();
  return report;
}

// Whoever hears of the end may launch the graph again or look at the planes at once: so everything is given
// back first.
Job::Next LaunchJob::finish(const LaunchOutcome& outcome) {
  spdlog::debug("session={:016x} graph={} launch={} replays={} of {} {}", session_->id(), request_.graph,
                request_.launch_id, whole_replays(), request_.count,
                outcome.ok() ? "OK" : info(outcome.status().reason()).wire_name);
  const std::int64_t whole = whole_replays();
  replay_.reset();
  graph_->end_launch(whole);
  graph_.reset();
  session_->leave(this);
  const std::shared_ptr<Session> session = std::move(session_);
  const LaunchEvents events = std::exchange(events_, {});
  if (began_ && request_.launch_id != 0) {
    session->outcomes().settle(request_.launch_id, outcome, true);
  } else {
    events.done(outcome);
  }
  return Next::done;
}

}  // namespace eagle::server
