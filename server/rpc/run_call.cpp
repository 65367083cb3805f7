#include "server/rpc/run_call.h"

#include <deque>
#include <utility>

#include "server/rpc/rpc_status.h"

namespace eagle::server {

// Verifying and compiling are not for gRPC's threads.
StatusOr<std::shared_ptr<SimulationJob>> start_run(Daemon& daemon, const grpc::CallbackServerContext& context,
                                                   const v1::SimulateRequest& request,
                                                   std::shared_ptr<const void> keep,
                                                   SimulationEvents events) {
  EAGLE_ASSIGN_OR_RETURN(const auto session, session_of(daemon, context));
  EAGLE_RETURN_IF_ERROR(daemon.accepts_work());
  EAGLE_ASSIGN_OR_RETURN(const auto job, SimulationJob::enter(daemon.executor(), session, request.launch_id(),
                                                              deadline_of(context), std::move(events)));
  const Status queued = daemon.build_pool().submit([&daemon, job, &request, keep = std::move(keep)] {
    const Status accepts = daemon.accepts_work();
    if (!accepts.ok()) return job->refuse(accepts);
    job->prepare(daemon.engine(), request.run());
  });
  if (!queued.ok()) job->refuse(queued);
  return job;
}

namespace {

// The stream of one run of a model with host steps. The client sends the request, then one reply to each
// call; the daemon sends calls and progress, then the result, and ends the stream. It owns itself until gRPC
// has no more use for it.
class RunConversation final : public grpc::ServerBidiReactor<v1::SimulateClientMessage, v1::SimulateEvent> {
public:
  static RunConversation* make(Daemon& daemon, grpc::CallbackServerContext& context) {
    std::shared_ptr<RunConversation> stream(new RunConversation(daemon, context));
    stream->self_ = stream;
    stream->StartRead(&stream->incoming_);
    return stream.get();
  }

private:
  RunConversation(Daemon& daemon, grpc::CallbackServerContext& context)
      : daemon_(daemon), context_(context) {}

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { give_up(); }
  void OnDone() override { self_.reset(); }

  Status on_message();
  Status start();
  // The client hears and answers no more.
  void give_up();
  void ask(std::uint64_t sequence, std::uint32_t call);
  void progress(std::int64_t steps, std::int64_t finished);
  void end(const StatusOr<step::RunResult>& outcome);
  void fail(const Status& status);
  void pump();

  Daemon& daemon_;
  grpc::CallbackServerContext& context_;
  std::shared_ptr<RunConversation> self_;
  v1::SimulateClientMessage incoming_;  // of the read in progress
  v1::SimulateRequest request_;
  bool started_ = false;  // the request came; of the reading side

  std::mutex mutex_;
  std::shared_ptr<SimulationJob> job_;
  bool gone_ = false;
  ProgressPace pace_{false};
  std::deque<v1::SimulateEvent> outgoing_;  // the first is being written while `writing_`
  bool writing_ = false;
  std::optional<Status> failure_;  // of the stream, which the run did not know of
  std::optional<Status> ending_;   // to finish with, once everything is written
  bool finished_ = false;
};

void RunConversation::OnReadDone(bool ok) {
  if (!ok) return started_ ? give_up() : fail({Reason::cancelled, "the client closed the stream of its run"});
  const Status status = on_message();
  if (!status.ok()) return fail(status);
  StartRead(&incoming_);
}

Status RunConversation::on_message() {
  switch (incoming_.kind_case()) {
    case v1::SimulateClientMessage::kSimulate:
      if (started_) return {Reason::bad_message, "expected one request in a stream, found a second"};
      started_ = true;
      request_ = std::move(*incoming_.mutable_simulate());
      return start();
    case v1::SimulateClientMessage::kReply: {
      std::shared_ptr<SimulationJob> job;
      {
        const std::lock_guard lock(mutex_);
        if (ending_) return {};  // it crossed the end of its run
        job = job_;
      }
      if (!job) return {Reason::bad_message, "expected a request first, found a host call's reply"};
      const v1::HostCallReply& reply = incoming_.reply();
      return job->answer(reply.sequence(),
                         reply.ok() ? Status() : Status(Reason::host_call_failed, reply.error()),
                         reply.stop(), reply.cancel());
    }
    case v1::SimulateClientMessage::KIND_NOT_SET:
      break;
  }
  return {Reason::bad_message, "expected a request or a host call's reply, found a message that is neither"};
}

Status RunConversation::start() {
  pace_ = ProgressPace(request_.progress());
  SimulationEvents events;
  events.host_call = [self = self_](std::uint64_t sequence, std::uint32_t call) {
    self->ask(sequence, call);
  };
  events.progress = [self = self_](std::int64_t steps, std::int64_t finished) {
    self->progress(steps, finished);
  };
  events.done = [self = self_](const StatusOr<step::RunResult>& outcome) { self->end(outcome); };
  EAGLE_ASSIGN_OR_RETURN(const auto job, start_run(daemon_, context_, request_, self_, std::move(events)));
  bool gone = false;
  {
    const std::lock_guard lock(mutex_);
    if (!ending_) job_ = job;
    gone = gone_;
  }
  if (gone) job->cancel();
  return {};
}

void RunConversation::give_up() {
  std::shared_ptr<SimulationJob> job;
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    job = job_;
  }
  if (job) job->cancel();
}

void RunConversation::fail(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    failure_ = status;
    if (job_) {
      gone_ = true;
    } else if (!ending_) {
      ending_ = status;
    }
  }
  give_up();
  pump();
}

void RunConversation::ask(std::uint64_t sequence, std::uint32_t call) {
  std::shared_ptr<SimulationJob> unanswered;
  {
    const std::lock_guard lock(mutex_);
    if (gone_) {
      unanswered = job_;
    } else {
      v1::HostCallRequest& request = *outgoing_.emplace_back().mutable_call();
      request.set_sequence(sequence);
      request.set_call(call);
    }
  }
  if (unanswered) {
    unanswered->cancel();
  } else {
    pump();
  }
}

// A client that reads slowly gets the newest.
void RunConversation::progress(std::int64_t steps, std::int64_t finished) {
  {
    const std::lock_guard lock(mutex_);
    if (!pace_.due()) return;
    const bool waiting = outgoing_.size() > (writing_ ? 1u : 0u) && outgoing_.back().has_progress();
    v1::RunProgress& message = *(waiting ? outgoing_.back() : outgoing_.emplace_back()).mutable_progress();
    message.set_steps(steps);
    message.set_finished(finished);
  }
  pump();
}

void RunConversation::end(const StatusOr<step::RunResult>& outcome) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    ending_ = failure_ && !outcome.ok() ? *failure_ : outcome.status();
    if (outcome.ok()) step::describe(*outcome, *outgoing_.emplace_back().mutable_result());
    job_.reset();
  }
  pump();
}

void RunConversation::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (ok) {
      outgoing_.pop_front();
    } else {
      outgoing_.clear();  // the stream is broken
    }
  }
  pump();
}

// Starts the next write, or finishes. gRPC takes one write at a time, and nothing after Finish.
void RunConversation::pump() {
  const v1::SimulateEvent* next = nullptr;
  Status status;
  {
    const std::lock_guard lock(mutex_);
    if (writing_ || finished_) return;
    if (!outgoing_.empty()) {
      writing_ = true;
      next = &outgoing_.front();
    } else if (ending_) {
      finished_ = true;
      status = *ending_;
    } else {
      return;
    }
  }
  if (next != nullptr) {
    StartWrite(next);
  } else {
    Finish(rpc::to_grpc(status, context_));
  }
}

}  // namespace

grpc::ServerBidiReactor<v1::SimulateClientMessage, v1::SimulateEvent>* simulate_with_calls(
    Daemon& daemon, grpc::CallbackServerContext& context) {
  return RunConversation::make(daemon, context);
}

}  // namespace eagle::server
