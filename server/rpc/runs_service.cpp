#include <optional>
#include <utility>

#include "eagle/v1/service.grpc.pb.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/run_call.h"
#include "server/rpc/services.h"

namespace eagle::server {
namespace {

// The stream of one run: progress while it lasts, then the result. A client that reads slowly gets the
// newest progress, not all of it. It owns itself until gRPC has no more use for it.
class RunStream final : public grpc::ServerWriteReactor<v1::SimulateEvent> {
public:
  static std::shared_ptr<RunStream> make(Daemon& daemon, grpc::CallbackServerContext& context,
                                         bool progress) {
    std::shared_ptr<RunStream> stream(new RunStream(daemon, context, progress));
    stream->self_ = stream;
    return stream;
  }

  // What to cancel when the client gives up.
  void started(std::shared_ptr<Job> job);
  void progress(std::int64_t steps, std::int64_t finished);
  void end(const StatusOr<step::RunResult>& outcome);

private:
  RunStream(Daemon& daemon, grpc::CallbackServerContext& context, bool progress)
      : daemon_(daemon), context_(context), pace_(progress) {}
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { self_.reset(); }
  void pump();

  Daemon& daemon_;
  grpc::CallbackServerContext& context_;
  std::shared_ptr<RunStream> self_;

  std::mutex mutex_;
  std::shared_ptr<Job> job_;
  bool cancelled_ = false;
  ProgressPace pace_;
  v1::SimulateEvent current_;  // being written while `writing_`
  std::optional<v1::SimulateEvent> next_;
  bool writing_ = false;
  std::optional<Status> ending_;  // to finish with, once everything is written
  bool finished_ = false;
};

void RunStream::started(std::shared_ptr<Job> job) {
  bool cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    job_ = job;
    cancelled = cancelled_;
  }
  if (cancelled) job->cancel();
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
    Finish(rpc::to_grpc(daemon_, status, context_));
  }
}

class RunsService final : public v1::Runs::CallbackService {
public:
  explicit RunsService(Daemon& daemon) : daemon_(daemon) {}

  grpc::ServerWriteReactor<v1::SimulateEvent>* Simulate(grpc::CallbackServerContext* context,
                                                        const v1::SimulateRequest* request) override {
    auto stream = RunStream::make(daemon_, *context, request->progress());
    const Status queued = queue(*context, *request, stream);
    if (!queued.ok()) stream->end(queued);
    return stream.get();
  }

  grpc::ServerBidiReactor<v1::SimulateClientMessage, v1::SimulateEvent>* SimulateWithCalls(
      grpc::CallbackServerContext* context) override {
    return simulate_with_calls(daemon_, *context);
  }

  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context, const v1::SubmitRequest* request,
                                   v1::SubmitReply* reply) override {
    const auto session = session_of(daemon_, *context);
    if (!session.ok()) return refuse(daemon_, *context, session.status());
    return at_once(daemon_, *context, [this, request, reply, &session](Session&) -> Status {
      EAGLE_RETURN_IF_ERROR(daemon_.accepts_launches(**session));
      EAGLE_ASSIGN_OR_RETURN(const std::uint64_t run, daemon_.kept_runs().submit(*session, *request));
      reply->set_run(run);
      return {};
    });
  }
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const v1::RunRef* request,
                                v1::KeptRun* reply) override {
    return at_once(daemon_, *context, [this, request, reply](Session& session) {
      return daemon_.kept_runs().get(session, request->run(), *reply);
    });
  }
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListRunsRequest*,
                                 v1::ListRunsReply* reply) override {
    return at_once(daemon_, *context, [this, reply](Session& session) {
      daemon_.kept_runs().list(session, *reply);
      return Status();
    });
  }
  grpc::ServerUnaryReactor* Fetch(grpc::CallbackServerContext* context, const v1::FetchRunRequest* request,
                                  v1::FetchRunReply*) override {
    constexpr std::uint64_t many = ~std::uint64_t{0};  // bytes: copying may take long
    return on_pool(daemon_, daemon_.memory_pool(many), *context,
                   [this, request](Session& session, const PendingCall& call) {
                     return daemon_.kept_runs().fetch(session, *request,
                                                      [&call] { return call.cancelled(); });
                   });
  }
  grpc::ServerUnaryReactor* CancelRun(grpc::CallbackServerContext* context, const v1::RunRef* request,
                                      v1::CancelReply*) override {
    return at_once(daemon_, *context, [this, request](Session& session) {
      return daemon_.kept_runs().cancel(session, request->run());
    });
  }

private:
  Status queue(grpc::CallbackServerContext& context, const v1::SimulateRequest& request,
               const std::shared_ptr<RunStream>& stream) {
    SimulationEvents events;
    events.progress = [stream](std::int64_t steps, std::int64_t finished) {
      stream->progress(steps, finished);
    };
    events.done = [stream](const StatusOr<step::RunResult>& outcome) { stream->end(outcome); };
    EAGLE_ASSIGN_OR_RETURN(const auto job, start_run(daemon_, context, request, stream, std::move(events)));
    stream->started(job);
    return {};
  }

  Daemon& daemon_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_runs_service(Daemon& daemon) {
  return std::make_unique<RunsService>(daemon);
}

}  // namespace eagle::server
