// SimulationJob: one run of a model on its way through the executor, a pass at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/engine.h"
#include "engine/run/control.h"
#include "engine/step/simulation.h"
#include "server/executor.h"
#include "server/session.h"

namespace eagle::v1 {
class RunDescription;
}

namespace eagle::server {

class Gpus;

// Neither may block.
struct SimulationEvents {
  std::function<void(std::int64_t steps, std::int64_t finished)> progress;  // between passes
  // Host step `call` is next: run it and `answer` with the sequence number. Empty: the caller cannot.
  std::function<void(std::uint64_t sequence, std::uint32_t call)> host_call;
  std::function<void(const StatusOr<step::RunResult>&)> done;  // exactly once, last
};

class SimulationJob final : public Job, public std::enable_shared_from_this<SimulationJob> {
public:
  // Enters the run into its session, so that it can be cancelled from here on. Then call `prepare`, once.
  // SESSION_CLOSED, or WORKER_RESTARTED for an id that may have run before; `events.done` is not called then.
  static StatusOr<std::shared_ptr<SimulationJob>> enter(
      Executor& executor, const std::shared_ptr<Session>& session, std::uint64_t launch_id,
      std::optional<std::chrono::steady_clock::time_point> deadline, SimulationEvents events);
  // A run of no session's own: it outlives this one, whose planes it was given beforehand.
  static std::shared_ptr<SimulationJob> detached(Executor& executor, const std::shared_ptr<Session>& session,
                                                 ResolvedPlanes planes, SimulationEvents events);
  // The trace that it belongs to, where that is not its session's. Before `prepare`.
  void set_trace(const TraceContext& trace) { trace_ = trace; }
  // Verifies, compiles and queues; takes as long as that takes. What it makes on a GPU for itself counts
  // there.
  void prepare(Engine& engine, Gpus& gpus, const v1::RunDescription& description);
  // Instead of `prepare`.
  void refuse(const Status& status) { static_cast<void>(finish(status)); }

  Next advance() override;
  // Not where the client has done its part: the step that it was of is completed.
  [[nodiscard]] bool ends_at_once() const override;
  // Ends it at the next whole step, with its result. One that waits for its client does not wait on: where
  // the client's part comes after a whole step, that is the result; within a step it is CANCELLED, without
  // one.
  void cancel() override;
  void stop(const Status& why) override;
  // The client ran its callable, or says why not. `stop`: it wants the run to end after this step, finished;
  // `cancel`: cancelled. BAD_MESSAGE when no such call is open, unless the run has been cancelled.
  Status answer(std::uint64_t sequence, Status result, bool stop, bool cancel);

private:
  SimulationJob(Executor& executor, std::shared_ptr<Session> session, std::uint64_t launch_id,
                SimulationEvents events)
      : executor_(executor),
        launch_id_(launch_id),
        session_(std::move(session)),
        trace_(session_->trace()),
        events_(std::move(events)) {}
  Status make_ready(Engine& engine, Gpus& gpus, const v1::RunDescription& description);
  void note();
  Next ask();
  [[nodiscard]] Status check_torn() const;
  // Where the run ends with an error within a step: marks what it writes, and says so for the error's text.
  [[nodiscard]] std::string mark_torn() const;
  StatusOr<step::RunResult> without_the_client();  // the end of one that was cancelled while it waited
  Next finish(StatusOr<step::RunResult> outcome);

  Executor& executor_;
  const std::uint64_t launch_id_;  // 0: none
  const std::shared_ptr<run::Control> control_ = std::make_shared<run::Control>();
  std::shared_ptr<Session> session_;
  TraceContext trace_;
  PlaneStore::Planes planes_;     // outlive what is bound to them
  std::vector<Plane*> by_index_;  // by plane of the description; null for the client's private ones
  bool begun_ = false;
  Ledger::Line line_;
  bool asked_ = false;  // the client has a part in the step and has not done it
  std::optional<ResolvedPlanes> given_;
  std::unique_ptr<step::Simulation> simulation_;
  std::set<std::uint32_t> between_steps_;  // host calls that come when every sample is at a whole step
  SimulationEvents events_;

  mutable std::mutex mutex_;
  bool parked_ = false;     // a host call is open
  bool abandoned_ = false;  // it was, when the run was cancelled
  bool stop_ = false;       // what the last answer wanted
  bool answered_ = false;
  std::uint64_t sequence_ = 0;  // of the last host call
  Status host_failure_;
  Status stopped_;  // why the daemon stopped it; ok: it did not
};

}  // namespace eagle::server
