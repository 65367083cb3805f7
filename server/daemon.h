// Daemon: the engine and everything around it that is not a socket. The transports call this.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/engine.h"
#include "server/attachments.h"
#include "server/executor.h"
#include "server/gpu_faults.h"
#include "server/gpu_watch.h"
#include "server/gpus.h"
#include "server/heap.h"
#include "server/kept_runs.h"
#include "server/launch_job.h"
#include "server/ledger.h"
#include "server/limits.h"
#include "server/log_limit.h"
#include "server/plane_budget.h"
#include "server/published.h"
#include "server/quarantine.h"
#include "server/restored_state.h"
#include "server/sessions.h"
#include "server/simulation_job.h"
#include "server/underway.h"
#include "server/work_pool.h"

namespace eagle::v1 {
class RetainRequest;
}

namespace eagle::server {

struct DaemonInfo {
  std::string version;
  run::HostIdentity host;
  double uptime_s = 0;
  int threads = 0;
  std::string cpu;
  std::uint64_t sessions = 0;
  std::uint64_t planes = 0;
  std::uint64_t plane_bytes = 0;
  std::uint64_t plane_budget_bytes = 0;
  std::uint64_t graphs = 0;
  std::uint64_t launches = 0;
  std::uint64_t kernels_cached = 0;
  std::uint64_t jobs = 0;       // launches and runs in hand
  std::uint64_t jobs_held = 0;  // of them, those that wait for an earlier one over the same bytes
  std::uint32_t restarts = 0;   // workers that there were before this one
  std::vector<TenantReport> tenants;
};

// Thread-safe.
class Daemon {
public:
  struct Options {
    int threads = 0;                        // of the team; 0: what the machine and cgroup allow
    std::uint64_t plane_budget_bytes = 0;   // 0: three quarters of what this process may use
    run::cuda::Devices::Chosen devices;     // GPUs that may be used
    std::uint64_t device_budget_bytes = 0;  // of planes on each; 0: three quarters of what it has
    codegen::Compiler::Options compiler;
    Limits limits;
    // Of a worker with a keeper: where it writes down what must survive it, what the worker before it left,
    // and where it notes what runs.
    std::shared_ptr<StateLog> log;
    RestoredState restored;
    std::unique_ptr<Ledger> ledger;
    // Called with each entry that was restored; may be empty.
    std::function<void()> restores;
    // Has another worker take the place of this one, as in `hand_over`; empty where nobody could.
    std::function<void(const std::string& why, const std::vector<BlamedGraph>& blamed)> replace_worker;
  };
  // BAD_VALUE for a budget over what this process may use: the system would end it, and not refuse.
  static StatusOr<std::unique_ptr<Daemon>> create(Options options);
  // `stop` it first. Whoever was told of a result may still be on the way here: the transports go before.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  [[nodiscard]] const Limits& limits() const { return limits_; }
  // The bounds that may change, from the next decision on.
  void set_limits(const Limits& limits);
  Engine& engine() { return *engine_; }
  Executor& executor() { return executor_; }
  Sessions& sessions() { return sessions_; }
  WorkPool& build_pool() { return build_pool_; }
  // For memory that clients made: its threads may wait for a driver.
  WorkPool& import_pool() { return import_pool_; }
  KeptRuns& kept_runs() { return kept_runs_; }
  Attachments& attachments() { return attachments_; }
  Published& published() { return published_; }
  PlaneBudget& plane_budget() { return *budget_; }
  // Of what it holds charges, whoever outlives it.
  const std::shared_ptr<PlaneBudget>& budget() const { return budget_; }
  // Takes the grants of `from` back (Published::withdraw), and stops what those who lose the array have under
  // way over it. Returns the bytes. UNKNOWN_NAME.
  StatusOr<std::shared_ptr<PlaneBytes>> withdraw(const Session& owner, const std::string& name,
                                                 const std::set<std::string>& from);
  Gpus& gpus() { return *gpus_; }
  [[nodiscard]] const Gpus& gpus() const { return *gpus_; }
  [[nodiscard]] const GpuFaults& gpu_faults() const { return gpu_faults_; }
  // Called with each GPU that is used ("cuda:0"), and again when it is lost. Empty ends it.
  void watch_gpus(std::function<void(const std::string& device, bool serves)> watch);
  // Moves the bytes of a plane in the session's turns, with whatever else uses them before or after, and
  // tells `done`, from any thread. PLANE_BUDGET: for that time they are there twice. QUOTA, SYSTEM,
  // OUT_OF_MEMORY.
  void seal_off(const std::shared_ptr<Session>& session, const std::shared_ptr<PlaneBytes>& bytes,
                const std::string& label, const std::function<void(const Status&)>& done);

  // These bytes have moved: written down anew, wherever they are. SYSTEM.
  Status note_moved(const PlaneBytes& bytes);

  // Where requests go that make or free so many bytes. Apart, so that no allocation waits for a compiler, and
  // no small one for a large one, which takes seconds.
  WorkPool& memory_pool(std::uint64_t bytes) {
    return bytes <= limits_.small_memory_bytes ? small_memory_pool_ : large_memory_pool_;
  }
  [[nodiscard]] DaemonInfo info() const;

  struct Built {
    std::uint64_t graph = 0;
    std::shared_ptr<LoadedGraph> loaded;
  };
  // Verifies, compiles, and enters the graph into the session; takes as long as that takes. CANCELLED,
  // between two kernels or so, where it is given up, or its session or the daemon has ended: what was
  // compiled is in the cache, and nothing else is left.
  StatusOr<Built> build(Session& session, const v1::GraphDescription& description,
                        const GivenUp& given_up = {});
  // New numbers for Params of a graph; all or none. UNKNOWN_GRAPH, BUSY.
  Status update(Session& session, const v1::UpdateRequest& request);
  // The same for an UpdateRequest as bytes that nobody has looked at. Empty where it would take long: the
  // graph is large (names are looked for in all of its nodes), or must be built again first.
  std::optional<Status> update_quickly(Session& session, const std::string& bytes);
  // The graph of this id, built again where the worker that built it has died; takes as long as that takes.
  // UNKNOWN_GRAPH, GRAPH_QUARANTINED, and what `build` says.
  StatusOr<std::shared_ptr<LoadedGraph>> graph(Session& session, std::uint64_t id);
  // Releases what the client does not know of: it resumed its session, and what was made in the moment of a
  // worker's death may have been left.
  Status retain(Session& session, const v1::RetainRequest& known);

  // Graphs that were running when workers died.
  [[nodiscard]] Quarantine& quarantine() { return quarantine_; }

  // Somebody at `peer` wanted to be known; the log tells of who was not, now and then.
  void note_authentication(const Status& outcome, std::string_view peer);
  // For lines about connections.
  [[nodiscard]] LogLimit& connection_lines() { return connection_lines_; }

  // Whether a worker's death ends no session.
  [[nodiscard]] bool survives() const { return log_ != nullptr; }
  // The graph of this id over other planes, from now on. BUSY while it runs; refused whole or done whole, and
  // given up like a build.
  StatusOr<std::shared_ptr<LoadedGraph>> rebind(Session& session, std::uint64_t graph,
                                                const v1::GraphDescription& description,
                                                const GivenUp& given_up = {});

  // A ring for the session's launches: BAD_MESSAGE when it has one, SESSION_CLOSED, OUT_OF_MEMORY,
  // PLANE_BUDGET.
  StatusOr<std::shared_ptr<Ring>> open_ring(const std::shared_ptr<Session>& session);

  // Recent events as Chrome's trace-event format: of one graph of a session, or with 0 of everything. How
  // many events these are, and how many were forgotten since the start.
  std::string timeline(std::uint64_t session, std::uint64_t graph, std::uint64_t& events,
                       std::uint64_t& forgotten);

  // New work is refused from here on: SHUTTING_DOWN. What is in hand gets `time`, for what refusals say.
  void begin_drain(std::chrono::seconds time = std::chrono::seconds(0));
  [[nodiscard]] bool drains() const { return draining_; }
  // Calls that are no jobs, and that a drain waits for as well.
  [[nodiscard]] Underway& underway() { return underway_; }
  // Whether the end has come: what was left of sessions and work has been cut off.
  [[nodiscard]] bool has_ended() const { return ended_; }
  // What a call is told that ends with `status`: once the end has come an error is that.
  [[nodiscard]] Status told(const Status& status) const;
  [[nodiscard]] Status accepts_work() const;
  // Frees memory that is kept for later, where nobody had use for it for so long. From any thread; does not
  // wait for it.
  void free_unused(std::chrono::seconds since);
  // Whether a new session may be opened: as `accepts_work`, but admins always may, to look.
  [[nodiscard]] Status admits(const Principal& principal) const;
  // Whether the session may launch and run: SHUTTING_DOWN besides, unless what it wants may be part of what
  // is to end first.
  [[nodiscard]] Status accepts_launches(const Session& session) const;
  // Whether what was accepted may begin: a drain has time for it. SHUTTING_DOWN once the end has come, and
  // while the daemon is handed over, as `accepts_launches`.
  [[nodiscard]] Status may_begin(const Session& session) const;
  // Waits for what is in hand, submitted runs and calls under way among it, until `hurry` becomes true (call
  // `wake` after setting it); logs what is cut off; then ends every session and waits for the jobs, which by
  // then have been cancelled. How many jobs were cancelled so.
  std::size_t stop(const std::atomic<bool>& hurry);
  // Another worker goes on with the sessions: returns when nothing runs, and nothing begins any more. What
  // runs when `hurry` becomes true is cancelled, at whole replays and steps. Everything else is served on.
  void hand_over(const std::atomic<bool>& hurry);
  void wake();
  // Stops what keeps others waiting for too long (Limits::piece_ms). Now and then, from one thread.
  void look_at_work();
  // Gives freed memory back to the system where there is much. Now and then, from one thread; does not wait
  // for it.
  void look_at_heap();
  // The same, after a call that leaves much. From any thread; does not wait for it.
  void give_back_heap();
  // Asks the drivers of GPUs in use whether these are still there. Now and then, from one thread; does not
  // wait for them.
  void look_at_gpus();
  // What keeps `stop` from returning, for people.
  [[nodiscard]] std::string what_runs() const;

private:
  Daemon(Options options, std::shared_ptr<PlaneBudget> budget, std::unique_ptr<Engine> engine);
  Status restore(RestoredState& state, const std::function<void()>& each);
  void mark_torn(const Ledger::Cut& cut);
  void gpu_used(const run::cuda::DeviceInfo& gpu);
  void gpu_silent(const run::cuda::DeviceInfo& gpu, bool silent, std::chrono::milliseconds waited);
  // A GPU's context is lost: from any thread, which goes on.
  void gpu_lost(const run::cuda::DeviceInfo& gpu, const Status& why);
  void report_lost(const run::cuda::DeviceInfo& gpu, const Status& why,
                   const std::vector<GraphHash>& computing);
  void replace_if_free();
  // While everything is restored: bytes that several entries are over, by their ids, and who opened what.
  struct Restoring {
    RestoredState& state;
    std::map<std::uint64_t, std::shared_ptr<PlaneBytes>> bytes = {};
  };
  StatusOr<std::shared_ptr<PlaneBytes>> restored_bytes(Restoring& restoring, const StateKey& key,
                                                       std::uint64_t id, std::uint64_t bytes);
  Status restore_plane(Restoring& restoring, const StateKey& key, const std::string& record);
  Status restore_name(Restoring& restoring, const StateKey& key, const std::string& record);
  Status restore_run(Restoring& restoring, const StateKey& key, const std::string& record);
  Status restore_entry(Restoring& restoring, const StateKey& key, const std::string& record);
  StatusOr<std::shared_ptr<LoadedGraph>> build_again(Session& session, std::uint64_t id);
  // Of what a session has asked for: also once it or the daemon has ended.
  [[nodiscard]] GivenUp given_up_with(const Session& session, const GivenUp& given_up) const;
  [[nodiscard]] std::chrono::seconds retry_after() const;
  void note_build(const Session& session, std::uint64_t graph, double seconds);
  // Whose they were that the keeper struck, as far as their sessions are still there.
  Status name_strikes();

  Limits limits_;
  const std::shared_ptr<StateLog> log_;
  const std::unique_ptr<Ledger> ledger_;
  Quarantine quarantine_;  // complete before anything runs
  std::mutex waking_;      // one graph is built again at a time
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  const std::uint32_t epoch_;
  std::atomic<std::uint64_t> builds_ = 0;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> ended_ = false;
  std::atomic<std::chrono::steady_clock::time_point> drain_ends_ = {};
  std::atomic<bool> handing_over_ = false;
  const std::shared_ptr<PlaneBudget> budget_;  // also of scratch memory, which graphs hold
  std::unique_ptr<Engine> engine_;
  const std::function<void(const std::string&, const std::vector<BlamedGraph>&)> replace_worker_;
  GpuFaults gpu_faults_;
  GpuWatch gpu_answers_{
      [this](const auto& gpu, bool silent, auto waited) { gpu_silent(gpu, silent, waited); }};
  std::mutex gpu_watch_mutex_;
  std::function<void(const std::string& device, bool serves)> gpu_watch_;
  struct Replacement {
    std::string why;
    std::vector<BlamedGraph> blamed;
    bool told = false;  // that it waits
  };
  std::optional<Replacement> replacement_;  // of this worker by another one: it is to be asked for
  const std::shared_ptr<Gpus> gpus_;
  Heap heap_;
  Underway underway_;
  LogLimit connection_lines_;
  LogLimit refused_lines_;
  LogLimit built_lines_;
  Published published_;
  Sessions sessions_;
  Executor executor_;
  // Last: their tasks use all of the above.
  WorkPool small_memory_pool_;
  WorkPool large_memory_pool_;
  WorkPool import_pool_;
  WorkPool build_pool_;
  KeptRuns kept_runs_;
  Attachments attachments_;
};

}  // namespace eagle::server
