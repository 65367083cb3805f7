#include <optional>
#include <utility>

#include "eagle/v1/service.grpc.pb.h"
#include "server/rpc/run_call.h"
#include "server/rpc/service.h"
#include "server/rpc/services.h"

namespace eagle::server {
namespace {

// The stream of one run: progress while it lasts, then the result. A client that reads slowly gets the
// newest progress, not all of it. It owns itself until gRPC has no more use for it.
class RunStream final : public OneRequest<grpc::ServerBidiReactor<grpc::ByteBuffer, v1::SimulateEvent>> {
public:
  explicit RunStream(const Arrival& arrival) : OneRequest(arrival) {}

private:
  google::protobuf::Message& request() override { return request_; }
  void answer() override;
  void fail(const Status& status) override { end(status); }
  StatusOr<std::shared_ptr<SimulationJob>> start();

  void progress(std::int64_t steps, std::int64_t finished);
  void end(const StatusOr<step::RunResult>& outcome);
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void pump();

  v1::SimulateRequest request_;

  std::mutex mutex_;
  std::shared_ptr<Job> job_;
  bool cancelled_ = false;
  ProgressPace pace_{false};
  v1::SimulateEvent current_;  // being written while `writing_`
  std::optional<v1::SimulateEvent> next_;
  bool writing_ = false;
  std::optional<Status> ending_;  // to finish with, once everything is written
  bool finished_ = false;
};

void RunStream::answer() {
  pace_ = ProgressPace(request_.progress());
  const auto job = start();
  if (!job.ok()) return end(job.status());
  bool cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    job_ = *job;
    cancelled = cancelled_;
  }
  if (cancelled) (*job)->cancel();
}

StatusOr<std::shared_ptr<SimulationJob>> RunStream::start() {
  const auto self = std::static_pointer_cast<RunStream>(shared_from_this());
  SimulationEvents events;
  events.progress = [self](std::int64_t steps, std::int64_t finished) { self->progress(steps, finished); };
  events.done = [self](const StatusOr<step::RunResult>& outcome) { self->end(outcome); };
  return start_run(daemon(), session(), context(), request_, self, std::move(events));
}

void RunStream::OnCancel() {
  std::shared_ptr<Job> job;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    job = job_;
  }
  if (job) job->cancel();
}

void RunStream::progress(std::int64_t steps, std::int64_t finished) {
  {
    const std::lock_guard lock(mutex_);
    if (!pace_.due()) return;
    v1::RunProgress& message = *next_.emplace().mutable_progress();
    message.set_steps(steps);
    message.set_finished(finished);
  }
  pump();
}

void RunStream::end(const StatusOr<step::RunResult>& outcome) {
  {
    const std::lock_guard lock(mutex_);
    next_.reset();
    if (outcome.ok()) step::describe(*outcome, *next_.emplace().mutable_result());
    ending_ = outcome.status();
  }
  pump();
}

void RunStream::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) next_.reset();  // the stream is broken: OnCancel tells the run
  }
  pump();
}

// Starts the next write, or finishes. gRPC takes one write at a time, and nothing after Finish.
void RunStream::pump() {
  Status status;
  bool writes = false;
  {
    const std::lock_guard lock(mutex_);
    if (writing_ || finished_ || (!next_ && !ending_)) return;
    writes = next_.has_value();
    if (writes) {
      writing_ = true;
      current_ = *std::exchange(next_, std::nullopt);
    } else {
      finished_ = true;
      job_.reset();
      status = *ending_;
    }
  }
  if (writes) {
    StartWrite(&current_);
  } else {
    Finish(rpc::to_grpc(daemon(), status, context()));
  }
}

class RunsService final : public Service {
public:
  explicit RunsService(Daemon& daemon) : Service(daemon, v1::Runs::service_full_name()), daemon_(daemon) {
    stream_out<RunStream, v1::SimulateEvent>("Simulate");
    stream<v1::SimulateEvent>("SimulateWithCalls", simulate_with_calls);
    keep();
  }

private:
  void keep() {
    unary("Submit", [this](PendingCall& call, const v1::SubmitRequest& request, v1::SubmitReply& reply) {
      at_once(call, [this, &request, &reply](Session& session) -> Status {
        EAGLE_RETURN_IF_ERROR(daemon_.accepts_launches(session));
        EAGLE_ASSIGN_OR_RETURN(const std::uint64_t run,
                               daemon_.kept_runs().submit(session.shared_from_this(), request));
        reply.set_run(run);
        return {};
      });
    });
    unary("Get", [this](PendingCall& call, const v1::RunRef& request, v1::KeptRun& reply) {
      at_once(call, [this, &request, &reply](Session& session) {
        return daemon_.kept_runs().get(session, request.run(), reply);
      });
    });
    unary("List", [this](PendingCall& call, const v1::ListRunsRequest&, v1::ListRunsReply& reply) {
      at_once(call, [this, &reply](Session& session) {
        daemon_.kept_runs().list(session, reply);
        return Status();
      });
    });
    unary("Fetch", [this](PendingCall& call, const v1::FetchRunRequest& request, v1::FetchRunReply&) {
      constexpr std::uint64_t many = ~std::uint64_t{0};  // bytes: copying may take long
      on_pool(call, daemon_.memory_pool(many), [this, &request](Session& session, const PendingCall& made) {
        return daemon_.kept_runs().fetch(session, request, [&made] { return made.cancelled(); });
      });
    });
    unary("CancelRun", [this](PendingCall& call, const v1::RunRef& request, v1::CancelReply&) {
      at_once(call, [this, &request](Session& session) {
        return daemon_.kept_runs().cancel(session, request.run());
      });
    });
  }

  Daemon& daemon_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_runs_service(Daemon& daemon) {
  return std::make_unique<RunsService>(daemon);
}

}  // namespace eagle::server
