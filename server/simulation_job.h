// SimulationJob: one run of a model on its way through the executor, a pass at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

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

// Neither may block.
struct SimulationEvents {
  std::function<void(std::int64_t steps, std::int64_t finished)> progress;  // between passes
  std::function<void(const StatusOr<step::RunResult>&)> done;               // exactly once, last
};

class SimulationJob final : public Job, public std::enable_shared_from_this<SimulationJob> {
public:
  // Enters the run into its session, so that it can be cancelled from here on. Then call `prepare`, once.
  // SESSION_CLOSED, in which case `events.done` is not called.
  static StatusOr<std::shared_ptr<SimulationJob>> enter(
      Executor& executor, const std::shared_ptr<Session>& session, std::uint64_t launch_id,
      std::optional<std::chrono::steady_clock::time_point> deadline, SimulationEvents events);
  // Verifies, compiles and queues; takes as long as that takes.
  void prepare(Engine& engine, const v1::RunDescription& description);
  // Instead of `prepare`.
  void refuse(const Status& status) { static_cast<void>(finish(status)); }

  Next advance() override;
  void cancel() override;

private:
  SimulationJob(Executor& executor, std::shared_ptr<Session> session, SimulationEvents events)
      : executor_(executor), session_(std::move(session)), events_(std::move(events)) {}
  Status make_ready(Engine& engine, const v1::RunDescription& description);
  Next finish(const StatusOr<step::RunResult>& outcome);

  Executor& executor_;
  const std::shared_ptr<run::Control> control_ = std::make_shared<run::Control>();
  std::shared_ptr<Session> session_;
  PlaneStore::Planes planes_;  // outlive what is bound to them
  std::unique_ptr<step::Simulation> simulation_;
  SimulationEvents events_;
};

}  // namespace eagle::server
