// KeptRuns: runs that were submitted and outlive their client's session, with the planes that they run on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/base/status.h"
#include "engine/engine.h"
#include "server/limits.h"
#include "server/log_limit.h"
#include "server/session.h"
#include "server/simulation_job.h"
#include "server/underway.h"
#include "server/work_pool.h"

namespace eagle::v1 {
class FetchRunRequest;
class KeptRun;
class ListRunsReply;
class RunRecord;
class SubmitRequest;
}  // namespace eagle::v1

namespace eagle::server {

class Gpus;

// Thread-safe. A run belongs to the user (uid) who submitted it: for anybody else it does not exist. It goes,
// with its planes, when it is fetched or its lease is over; a run that still computes then is cancelled
// first.
class KeptRuns {
public:
  // Where runs are written down (null: nowhere), and how many workers there were before.
  struct Survival {
    StateLog* log = nullptr;
    std::uint32_t epoch = 0;
  };
  // Runs that are not the executor's yet are `underway`.
  KeptRuns(Engine& engine, Gpus& gpus, Executor& executor, WorkPool& builders, Underway& underway,
           PlaneBudget& budget, const Limits& limits, Survival survival);
  ~KeptRuns();
  KeptRuns(const KeptRuns&) = delete;
  KeptRuns& operator=(const KeptRuns&) = delete;

  // The run's id, once its planes are found; compiling and running go on by themselves. BAD_VALUE for a lease
  // that cannot be, QUOTA (kept_runs, kept_runs_in_all), UNKNOWN_PLANE, GRAPH_STATE for host steps,
  // PERMISSION_DENIED for nobody in particular. Its names and views are charged: PLANE_BUDGET, QUOTA
  // (tenant_plane_bytes).
  StatusOr<std::uint64_t> submit(const std::shared_ptr<Session>& session, const v1::SubmitRequest& request);
  Status get(const Session& session, std::uint64_t run, v1::KeptRun& reply) const;  // UNKNOWN_RUN
  void list(const Session& session, v1::ListRunsReply& reply) const;
  // Copies into planes of the session, and keeps the run no longer. GRAPH_STATE while it runs; CANCELLED
  // where `given_up` (may be empty) says that nobody waits for it any more: then the run is kept.
  Status fetch(Session& session, const v1::FetchRunRequest& request,
               const std::function<bool()>& given_up = {});
  Status cancel(const Session& session, std::uint64_t run);
  // Cancels all, and keeps none.
  void end_all();
  // Cancels those that still run. They are kept.
  void cancel_all();

  // Those that have not been fetched and whose arrays lie on the GPU of this UUID; at most so many.
  struct OnGpu {
    std::uint64_t id = 0;
    std::string name, tenant;
  };
  [[nodiscard]] std::vector<OnGpu> on_gpu(std::string_view uuid, std::size_t most) const;

  // A run of another worker. One that had not ended there ends now, with WORKER_RESTARTED and how far it had
  // come by `record`. `planes`: those that may be fetched, of one that had. BAD_MESSAGE.
  Status restore(std::uint64_t id, const v1::RunRecord& record, PlaneStore::Planes planes, Tenants& tenants);
  // The id of the entry of a run's Nth plane.
  static std::uint64_t plane_key(std::uint64_t run, std::uint64_t plane);

private:
  using Clock = std::chrono::steady_clock;
  struct Run;
  using Runs = std::map<std::uint64_t, std::shared_ptr<Run>>;

  StatusOr<std::shared_ptr<Run>> find(const Session& session, std::uint64_t run) const;
  static void describe(const Run& run, v1::KeptRun& reply);
  void expire();
  void write_down(Run& run) const;  // with its lock held
  void write_down_end(Run& run) const;
  void note_progress(Run& run) const;

  Engine& engine_;
  Gpus& gpus_;
  Executor& executor_;
  WorkPool& builders_;
  Underway& underway_;
  PlaneBudget& budget_;
  LogLimit submitted_lines_;
  LogLimit over_lines_;
  const Limits& limits_;
  const Survival survival_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Runs runs_;
  std::uint64_t last_;
  bool ending_ = false;
  std::jthread keeper_;  // last: ends before what it uses
};

}  // namespace eagle::server
