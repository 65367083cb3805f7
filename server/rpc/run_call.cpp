#include "server/rpc/run_call.h"

#include <utility>

#include "server/rpc/conversation.h"

namespace eagle::server {

// Verifying and compiling are not for gRPC's threads.
StatusOr<std::shared_ptr<SimulationJob>> start_run(Daemon& daemon, const std::shared_ptr<Session>& session,
                                                   const grpc::CallbackServerContext& context,
                                                   const v1::SimulateRequest& request,
                                                   std::shared_ptr<const void> keep,
                                                   SimulationEvents events) {
  EAGLE_RETURN_IF_ERROR(daemon.accepts_launches(*session));
  EAGLE_ASSIGN_OR_RETURN(const auto job, SimulationJob::enter(daemon.executor(), session, request.launch_id(),
                                                              deadline_of(context), std::move(events)));
  job->set_trace(trace_of(*session, context));
  if (request.cancelled()) job->cancel();
  const Status queued = daemon.build_pool().submit(
      [&daemon, session, job, &request, keep = std::move(keep),
       counted = daemon.underway().enter()]() mutable {
        if (const Status may = daemon.may_begin(*session); may.ok()) {
          job->prepare(daemon.engine(), daemon.gpus(), request.run());
        } else {
          job->refuse(may);
        }
        counted.reset();  // from here on it is a job, or has ended
      },
      session->tenant()->name());
  if (!queued.ok()) job->refuse(queued);
  return job;
}

namespace {

// The stream of one run of a model with host steps. The client sends the request, then one reply to each
// call; the daemon sends calls and progress, then the result, and ends the stream.
class RunConversation final
    : public Conversation<RunConversation, v1::SimulateClientMessage, v1::SimulateEvent> {
public:
  explicit RunConversation(const Arrival& arrival) : Conversation(arrival) {}

private:
  void OnCancel() override { give_up(); }
  Status on_message() override;
  void on_client_done() override;
  void fail(const Status& status) override;

  Status start();
  // The client hears and answers no more.
  void give_up();
  void ask(std::uint64_t sequence, std::uint32_t call);
  void progress(std::int64_t steps, std::int64_t finished);
  void end(const StatusOr<step::RunResult>& outcome);

  v1::SimulateRequest request_;
  HeldBytes held_for_request_;
  bool started_ = false;  // the request came; of the reading side

  // Guarded by `mutex_`.
  std::shared_ptr<SimulationJob> job_;
  bool gone_ = false;
  ProgressPace pace_{false};
};

void RunConversation::on_client_done() {
  if (started_) return give_up();
  fail(unreadable("a SimulateClientMessage with a request"));
}

Status RunConversation::on_message() {
  switch (incoming_.kind_case()) {
    case v1::SimulateClientMessage::kSimulate:
      if (started_) return {Reason::bad_message, "expected one request in a stream, found a second"};
      started_ = true;
      request_ = std::move(*incoming_.mutable_simulate());
      held_for_request_ = std::move(held_);
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
  EAGLE_ASSIGN_OR_RETURN(const auto job,
                         start_run(daemon_, session_, context_, request_, self_, std::move(events)));
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

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, v1::SimulateEvent>* simulate_with_calls(const Arrival& arrival) {
  return RunConversation::begin(arrival);
}

}  // namespace eagle::server
