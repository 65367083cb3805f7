// KeptRuns: runs that were submitted and outlive their client's session, with the planes that they run on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/base/status.h"
#include "engine/engine.h"
#include "server/limits.h"
#include "server/session.h"
#include "server/simulation_job.h"
#include "server/work_pool.h"

namespace eagle::v1 {
class FetchRunRequest;
class KeptRun;
class ListRunsReply;
class SubmitRequest;
}  // namespace eagle::v1

namespace eagle::server {

// Thread-safe. A run belongs to the user (uid) who submitted it: for anybody else it does not exist. It goes,
// with its planes, when it is fetched or its lease is over; a run that still computes then is cancelled
// first.
class KeptRuns {
public:
  KeptRuns(Engine& engine, Executor& executor, WorkPool& builders, const Limits& limits);
  ~KeptRuns();
  KeptRuns(const KeptRuns&) = delete;
  KeptRuns& operator=(const KeptRuns&) = delete;

  // The run's id, once its planes are found; compiling and running go on by themselves. BAD_VALUE for a lease
  // that cannot be, QUOTA (kept_runs, kept_runs_in_all), UNKNOWN_PLANE, GRAPH_STATE for host steps,
  // PERMISSION_DENIED for nobody in particular.
  StatusOr<std::uint64_t> submit(const std::shared_ptr<Session>& session, const v1::SubmitRequest& request);
  Status get(const Session& session, std::uint64_t run, v1::KeptRun& reply) const;  // UNKNOWN_RUN
  void list(const Session& session, v1::ListRunsReply& reply) const;
  // Copies into planes of the session, and keeps the run no longer. GRAPH_STATE while it runs; CANCELLED
  // where `given_up` (may be empty) says that nobody waits for it any more: then the run is kept.
  Status fetch(Session& session, const v1::FetchRunRequest& request,
               const std::function<bool()>& given_up = {});
  Status cancel(const Session& session, std::uint64_t run);
  // Cancels all.
  void end_all();

private:
  using Clock = std::chrono::steady_clock;
  struct Run;
  using Runs = std::map<std::uint64_t, std::shared_ptr<Run>>;

  StatusOr<std::shared_ptr<Run>> find(const Session& session, std::uint64_t run) const;
  static void describe(const Run& run, v1::KeptRun& reply);
  void expire();

  Engine& engine_;
  Executor& executor_;
  WorkPool& builders_;
  const Limits& limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Runs runs_;
  std::uint64_t last_ = 0;
  bool ending_ = false;
  std::jthread keeper_;  // last: ends before what it uses
};

}  // namespace eagle::server
