#include "server/rpc/launch_call.h"

#include <utility>

#include "engine/run/report_message.h"
#include "server/rpc/conversation.h"

namespace eagle::server {
namespace {

LaunchRequest request_of(const v1::LaunchRequest& message, const Session& session,
                         const grpc::CallbackServerContext& context) {
  return {message.graph(), message.count(), message.launch_id(), trace_of(session, context)};
}

void describe(const LaunchReport& report, v1::LaunchReport& message) {
  run::describe(report.host(), *message.mutable_host());
  message.set_launches(report.launches);
  message.set_threads(report.threads);
  message.set_wall_s(report.wall_s);
  message.mutable_iterations()->Add(report.iterations.begin(), report.iterations.end());
  run::describe(report.counts, *message.mutable_counts());
}

Status closed() { return {Reason::cancelled, "the client closed the stream of its launch"}; }

// The stream of one launch. The client sends the launch, then one reply to each host call; the daemon sends
// host calls, then the report, and ends the stream.
class LaunchConversation final
    : public Conversation<LaunchConversation, v1::LaunchClientMessage, v1::LaunchServerMessage> {
public:
  explicit LaunchConversation(const Arrival& arrival) : Conversation(arrival) {}

private:
  void OnCancel() override;
  Status on_message() override;
  void on_client_done() override;
  // Ends the launch if there is one, and the stream with `status` in any case.
  void fail(const Status& status) override;

  Status start(const v1::LaunchRequest& request);
  void ask(std::uint64_t sequence, std::uint32_t call);
  void end(const LaunchOutcome& outcome);
  [[nodiscard]] std::shared_ptr<LaunchJob> job();

  bool started_ = false;  // the launch message came; of the reading side

  // Guarded by `mutex_`.
  std::shared_ptr<LaunchJob> job_;
  bool cancelled_ = false;
  bool client_done_ = false;  // it sends no more
  bool call_open_ = false;
};

Status LaunchConversation::on_message() {
  switch (incoming_.kind_case()) {
    case v1::LaunchClientMessage::kLaunch:
      if (started_) return {Reason::bad_message, "expected one launch message in a stream, found a second"};
      started_ = true;
      return start(incoming_.launch());
    case v1::LaunchClientMessage::kReply: {
      const auto running = job();
      if (!running)
        return {Reason::bad_message, "expected a launch message first, found a host call's reply"};
      {
        const std::lock_guard lock(mutex_);
        call_open_ = false;
      }
      const v1::HostCallReply& reply = incoming_.reply();
      return running->answer(reply.sequence(),
                             reply.ok() ? Status() : Status(Reason::host_call_failed, reply.error()),
                             reply.cancel());
    }
    case v1::LaunchClientMessage::KIND_NOT_SET:
      break;
  }
  return {Reason::bad_message, "expected a launch or a host call's reply, found a message that is neither"};
}

Status LaunchConversation::start(const v1::LaunchRequest& request) {
  EAGLE_RETURN_IF_ERROR(request.enqueued() ? daemon_.accepts_work() : daemon_.accepts_launches(*session_));
  LaunchEvents events;
  events.enqueued = request.enqueued();
  events.host_call = [self = self_](std::uint64_t sequence, std::uint32_t call) {
    self->ask(sequence, call);
  };
  events.done = [self = self_](const LaunchOutcome& outcome) { self->end(outcome); };
  auto job = LaunchJob::start(daemon_.executor(), session_, request_of(request, *session_, context_),
                              deadline_of(context_), std::move(events));
  bool cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    if (!ending_) job_ = job;
    cancelled = cancelled_;
  }
  if (cancelled && job) job->cancel();
  return {};
}

std::shared_ptr<LaunchJob> LaunchConversation::job() {
  const std::lock_guard lock(mutex_);
  return job_;
}

// A client may close its side once it has sent the launch, and still get the report, unless the launch needs
// it to answer.
void LaunchConversation::on_client_done() {
  bool awaited = false;
  {
    const std::lock_guard lock(mutex_);
    client_done_ = true;
    awaited = call_open_;
  }
  if (!started_) return fail(unreadable("a LaunchClientMessage with a launch"));
  if (awaited) fail(closed());
}

void LaunchConversation::OnCancel() {
  std::shared_ptr<LaunchJob> job;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    job = job_;
  }
  if (job) job->cancel();
}

void LaunchConversation::fail(const Status& status) {
  std::shared_ptr<LaunchJob> running;
  {
    const std::lock_guard lock(mutex_);
    failure_ = status;
    running = job_;
  }
  if (running) {
    running->cancel();  // ends the stream in its turn
  } else {
    end(status);
  }
}

void LaunchConversation::ask(std::uint64_t sequence, std::uint32_t call) {
  bool nobody_answers = false;
  {
    const std::lock_guard lock(mutex_);
    call_open_ = true;
    nobody_answers = client_done_;
    if (!nobody_answers) {
      v1::HostCallRequest& request = *outgoing_.emplace_back().mutable_call();
      request.set_sequence(sequence);
      request.set_call(call);
    }
  }
  if (nobody_answers) {
    fail(closed());
  } else {
    pump();
  }
}

void LaunchConversation::end(const LaunchOutcome& outcome) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    ending_ = failure_ && !outcome.ok() ? *failure_ : outcome.status();
    call_open_ = false;
    if (outcome.ok()) describe(*outcome, *outgoing_.emplace_back().mutable_report());
    job_.reset();
  }
  pump();
}

}  // namespace

void launch_call(PendingCall& call, const v1::LaunchRequest& request, v1::LaunchReport& reply) {
  Daemon& daemon = call.daemon();
  const auto& session = call.session();
  const Status accepts = request.enqueued() ? daemon.accepts_work() : daemon.accepts_launches(*session);
  if (!accepts.ok()) return call.finish(accepts);
  LaunchEvents events;
  events.enqueued = request.enqueued();
  events.done = [held = call.shared(), &reply](const LaunchOutcome& outcome) {
    if (outcome.ok()) describe(*outcome, reply);
    held->finish(outcome.status());
  };
  const auto held = call.shared();  // it may be over before `start` returns
  const auto job = LaunchJob::start(daemon.executor(), session, request_of(request, *session, call.context()),
                                    deadline_of(call.context()), std::move(events));
  if (job) call.when_cancelled([job] { job->cancel(); });
}

void enqueue_call(PendingCall& call, const v1::LaunchRequest& request) {
  at_once(call, [&call, &request](Session& session) -> Status {
    EAGLE_RETURN_IF_ERROR(call.daemon().accepts_launches(session));
    if (request.launch_id() == 0) {
      return {Reason::bad_value, "expected a launch id above 0, by which the outcome can be asked for"};
    }
    // A refusal is told in this thread, before `start` returns; the end of the launch may come at any time.
    const auto refused = std::make_shared<std::pair<std::mutex, Status>>();
    LaunchEvents events;
    events.asked_for_later = true;
    events.done = [refused](const LaunchOutcome& outcome) {
      const std::lock_guard lock(refused->first);
      refused->second = outcome.status();
    };
    const auto job =
        LaunchJob::start(call.daemon().executor(), session.shared_from_this(),
                         request_of(request, session, call.context()), std::nullopt, std::move(events));
    const std::lock_guard lock(refused->first);
    return job ? Status() : refused->second;
  });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, v1::LaunchServerMessage>* launch_with_calls(
    const Arrival& arrival) {
  return LaunchConversation::begin(arrival);
}

}  // namespace eagle::server
