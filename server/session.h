// Session: everything that one client holds, from its Hello to the end of its side connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "server/executor.h"
#include "server/launch_outcomes.h"
#include "server/limits.h"
#include "server/loaded_graph.h"
#include "server/plane_store.h"
#include "server/principal.h"

namespace eagle::server {

class Ring;
class Rings;

// Thread-safe. Calls hold it by shared_ptr, so it may outlive its own end; what comes after the end gets
// SESSION_CLOSED or finds nothing.
class Session : public std::enable_shared_from_this<Session> {
public:
  using Graphs = std::vector<std::pair<std::uint64_t, std::shared_ptr<LoadedGraph>>>;

  Session(std::uint64_t id, Principal principal, std::string client, PlaneBudget& budget,
          const Limits& limits)
      : id_(id),
        principal_(principal),
        client_(std::move(client)),
        limits_(limits),
        planes_(budget, limits),
        outcomes_(limits) {}

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const Principal& principal() const { return principal_; }
  [[nodiscard]] const std::string& client() const { return client_; }
  [[nodiscard]] bool ended() const;
  // It came over TCP: no descriptor reaches its client.
  [[nodiscard]] bool over_tcp() const { return over_tcp_.load(std::memory_order_relaxed); }
  void set_over_tcp() { over_tcp_.store(true, std::memory_order_relaxed); }

  PlaneStore& planes() { return planes_; }
  LaunchOutcomes& outcomes() { return outcomes_; }

  // The graph's id. QUOTA (graphs), SESSION_CLOSED.
  StatusOr<std::uint64_t> add(std::shared_ptr<LoadedGraph> graph);
  StatusOr<std::shared_ptr<LoadedGraph>> graph(std::uint64_t id) const;  // UNKNOWN_GRAPH
  // From now on the id means this graph. UNKNOWN_GRAPH.
  Status replace_graph(std::uint64_t id, std::shared_ptr<LoadedGraph> graph);
  // A launch that runs keeps the graph until it has ended. UNKNOWN_GRAPH.
  Status release_graph(std::uint64_t id);
  [[nodiscard]] Graphs graphs() const;

  // Jobs are held here from their admission to their end, and cancelled when the session ends.
  Status enter(std::shared_ptr<Job> job, std::uint64_t launch_id);  // SESSION_CLOSED
  void leave(const Job* job);
  // Cancels the jobs of this id that are in flight, if there are any. 0 names none.
  void cancel(std::uint64_t launch_id);

  // From now until its end the session's launches may come from the ring. BAD_MESSAGE when it has one.
  Status attach(std::shared_ptr<Rings> rings, std::shared_ptr<Ring> ring);

  // Cancels what runs and gives up everything; the caller destroys it where that may take time.
  struct Remains {
    Graphs graphs;
    PlaneStore::Planes planes;
  };
  Remains end();

private:
  const std::uint64_t id_;
  const Principal principal_;
  const std::string client_;
  const Limits& limits_;
  std::atomic<bool> over_tcp_ = false;
  PlaneStore planes_;
  LaunchOutcomes outcomes_;

  mutable std::mutex mutex_;
  bool ended_ = false;
  std::uint64_t last_graph_ = 0;
  std::map<std::uint64_t, std::shared_ptr<LoadedGraph>> graphs_;
  struct InFlight {
    std::shared_ptr<Job> job;
    std::uint64_t launch_id = 0;
  };
  std::map<const Job*, InFlight> jobs_;
  std::shared_ptr<Rings> rings_;
  std::shared_ptr<Ring> ring_;
};

}  // namespace eagle::server
