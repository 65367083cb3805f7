// Session: everything that one client holds, from its Hello to the end of its side connection, or of the
// lease after it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/status.h"
#include "engine/base/trace_context.h"
#include "server/executor.h"
#include "server/graph_records.h"
#include "server/launch_outcomes.h"
#include "server/limits.h"
#include "server/loaded_graph.h"
#include "server/plane_store.h"
#include "server/principal.h"
#include "server/tenants.h"
#include "server/transfers.h"

namespace eagle::server {

class Ring;
class Rings;

// Thread-safe. Calls hold it by shared_ptr, so it may outlive its own end; what comes after the end gets
// SESSION_CLOSED or finds nothing.
class Session : public std::enable_shared_from_this<Session> {
public:
  using Graphs = std::vector<std::pair<std::uint64_t, std::shared_ptr<LoadedGraph>>>;

  // Where what it holds is written down, and how many workers there were before this one.
  struct Survival {
    StateLog* log = nullptr;
    std::uint32_t epoch = 0;
    std::chrono::seconds lease{0};
    Ledger* ledger = nullptr;
    bool left = false;  // another worker left it
  };
  Session(std::uint64_t id, Principal principal, std::string client, PlaneBudget& budget,
          const Limits& limits, std::shared_ptr<Tenant> tenant, Tenant::Share share, Survival survival)
      : id_(id),
        principal_(principal),
        client_(std::move(client)),
        limits_(limits),
        tenant_(std::move(tenant)),
        share_(std::move(share)),
        log_(survival.log),
        // Ids and generations of this worker are above those of the workers before: none is used twice.
        planes_(budget, limits, tenant_, {survival.log, id, first_id(survival.epoch)}),
        transfers_(budget, limits, tenant_),
        ledger_(survival.ledger),
        begun_(survival.ledger == nullptr ? Ledger::Begun() : survival.ledger->begun(id, survival.left)),
        outcomes_(limits, begun_),
        records_(survival.log, id, budget, tenant_),
        lease_(survival.lease),
        last_process_(first_id(survival.epoch)),
        last_graph_(first_id(survival.epoch)) {}

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const Principal& principal() const { return principal_; }
  [[nodiscard]] const std::string& client() const { return client_; }
  [[nodiscard]] const Limits& limits() const { return limits_; }
  [[nodiscard]] const std::shared_ptr<Tenant>& tenant() const { return tenant_; }
  // Where it is written down; null: nowhere, and it ends with this worker.
  [[nodiscard]] StateLog* log() const { return log_; }
  [[nodiscard]] bool ended() const;
  // It came over TCP: no descriptor reaches its client.
  [[nodiscard]] bool over_tcp() const { return over_tcp_.load(std::memory_order_relaxed); }
  void set_over_tcp() { over_tcp_.store(true, std::memory_order_relaxed); }

  // The trace of the user's that it was opened in, for what says no other.
  [[nodiscard]] TraceContext trace() const;
  void set_trace(const TraceContext& trace);
  // Whether its launches may come from a ring.
  [[nodiscard]] bool has_ring() const;
  [[nodiscard]] std::size_t jobs() const;  // launches and runs in hand
  [[nodiscard]] double age_s() const { return seconds_since(began_); }

  // How long it is kept once its connection has ended.
  [[nodiscard]] std::chrono::seconds lease() const { return lease_.load(std::memory_order_relaxed); }
  void end_lease() { lease_.store(std::chrono::seconds(0), std::memory_order_relaxed); }

  PlaneStore& planes() { return planes_; }
  Transfers& transfers() { return transfers_; }
  GraphRecords& records() { return records_; }
  LaunchOutcomes& outcomes() { return outcomes_; }
  // Where it is noted what runs; null: nowhere.
  [[nodiscard]] Ledger* ledger() const { return ledger_; }
  // A launch or run of this id is about to store for the first time.
  void note_begun(std::uint64_t launch_id) {
    const std::lock_guard lock(begun_mutex_);
    begun_.note(launch_id);
  }

  // The graph's id. QUOTA (graphs), SESSION_CLOSED.
  StatusOr<std::uint64_t> add(std::shared_ptr<LoadedGraph> graph);
  // UNKNOWN_GRAPH; GRAPH_STATE for one that another worker built, until it is restored.
  StatusOr<std::shared_ptr<LoadedGraph>> graph(std::uint64_t id) const;
  // A graph that another worker built: known by its record only, from now on and until it is woken. It counts
  // for the tenant, as far as the tenant's quota goes: it is there already.
  void add_dormant(std::uint64_t id);
  void wake(std::uint64_t id,
            std::shared_ptr<LoadedGraph> graph);  // ignored where it is not dormant any more
  [[nodiscard]] bool dormant(std::uint64_t id) const;
  [[nodiscard]] std::vector<std::uint64_t> dormant() const;
  // From now on the id means this graph. UNKNOWN_GRAPH.
  Status replace_graph(std::uint64_t id, std::shared_ptr<LoadedGraph> graph);
  // A launch that runs keeps the graph until it has ended. UNKNOWN_GRAPH.
  Status release_graph(std::uint64_t id);
  [[nodiscard]] Graphs graphs() const;

  // Jobs are held here from their admission to their end, and cancelled when the session ends.
  Status enter(std::shared_ptr<Job> job, std::uint64_t launch_id);  // SESSION_CLOSED
  // The same of a launch, with what it needs: nothing is looked for twice. As `graph`, and then it is not in.
  struct Launching {
    std::shared_ptr<LoadedGraph> graph;
    TraceContext trace;  // the session's
  };
  StatusOr<Launching> enter(std::shared_ptr<Job> job, std::uint64_t launch_id, std::uint64_t graph);
  void leave(const Job* job);
  // Cancels the jobs of this id that are in flight, if there are any. 0 names none.
  void cancel(std::uint64_t launch_id);
  void cancel_all();

  // From now until its end the session's launches may come from the ring. BAD_MESSAGE when it has one.
  Status attach(std::shared_ptr<Rings> rings, std::shared_ptr<Ring> ring);
  // The client has another connection now, or never got its ring, and may have another one. `only`: where it
  // still is this one; null: whichever it is.
  void detach_ring(const Ring* only = nullptr);
  // The daemon is being exchanged: Ring::set_closing.
  void close_ring();

  // The process (pidfd, borrowed) may map planes of the session from now on; one that it is known already
  // stays the same. What is to be written down goes to `changes`, with borrowed descriptors. SYSTEM; QUOTA
  // (processes): each that runs takes a descriptor here and in the keeper.
  StatusOr<ProcessRef> admit(int process, pid_t pid, std::vector<StateChange>& changes);
  // As another worker left it.
  void restore_process(std::uint64_t id, pid_t pid, UniqueFd process);
  // Of those that still run, what is written down of them, with borrowed descriptors.
  [[nodiscard]] std::vector<StateChange> processes() const;
  // Every plane that is there may be mapped by every process: nobody knows better any more.
  void assume_mapped();

  // Cancels what runs and gives up everything; the caller destroys it where that may take time.
  struct Remains {
    Graphs graphs;
    PlaneStore::Planes planes;
  };
  Remains end();

private:
  static constexpr std::uint64_t first_id(std::uint32_t epoch) { return std::uint64_t{epoch} << 32; }

  const std::uint64_t id_;
  const Principal principal_;
  const std::string client_;
  const Limits& limits_;
  const std::shared_ptr<Tenant> tenant_;
  const Tenant::Share share_;  // of its sessions
  StateLog* const log_;
  std::atomic<bool> over_tcp_ = false;
  PlaneStore planes_;
  Transfers transfers_;
  Ledger* const ledger_;
  std::mutex begun_mutex_;
  Ledger::Begun begun_;
  LaunchOutcomes outcomes_;
  GraphRecords records_;
  std::atomic<std::chrono::seconds> lease_;

  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();

  StatusOr<std::shared_ptr<LoadedGraph>> find_graph(std::uint64_t id) const;  // with the lock held
  [[nodiscard]] StateChange entry_of(std::uint64_t process, const ClientProcess& known) const;

  mutable std::mutex mutex_;
  bool ended_ = false;
  TraceContext trace_;
  std::uint64_t last_process_;
  std::map<std::uint64_t, ProcessRef> processes_;
  std::uint64_t last_graph_;
  std::map<std::uint64_t, std::shared_ptr<LoadedGraph>> graphs_;
  std::map<std::uint64_t, Tenant::Share> dormant_;
  struct InFlight {
    std::shared_ptr<Job> job;
    std::uint64_t launch_id = 0;
  };
  std::vector<InFlight> jobs_;  // in no order: there is mostly one
  std::shared_ptr<Rings> rings_;
  std::shared_ptr<Ring> ring_;
};

}  // namespace eagle::server
