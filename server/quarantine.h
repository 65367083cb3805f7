// Quarantine: graphs that were computing when workers died, and whose they are.
//
// The keeper strikes a graph for each such death; at `deaths_to_quarantine` it is not launched again. Strikes
// are of one tenant (hash_of takes its name in): a graph that one tenant crashes with stays free for the
// others. A tenant whose graphs, by whatever names, were there at `deaths_of_a_tenant` deaths within
// `struck_for` builds and restores none until that is over, or an admin pardons it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "server/ledger.h"
#include "server/state_log.h"

namespace eagle::server {

constexpr std::uint32_t deaths_of_a_tenant = 6;
constexpr std::chrono::hours struck_for{1};

// A graph that a death is laid to.
struct BlamedGraph {
  GraphHash hash{};
  std::string tenant;
  std::string graph;  // its name
};

// Thread-safe.
class Quarantine {
public:
  using Clock = std::chrono::steady_clock;
  struct Strike {
    GraphHash hash{};
    std::uint32_t deaths = 0;
    std::string tenant;      // empty: whose it was is not known
    std::string graph;       // its name, likewise
    Clock::time_point last;  // death

    [[nodiscard]] bool quarantined() const { return deaths >= deaths_to_quarantine; }
  };

  // `log`: where strikes are written down; may be null.
  explicit Quarantine(StateLog* log) : log_(log) {}

  // As the keeper wrote it down. BAD_MESSAGE.
  Status restore(const std::string& record);
  // Whether whose it was is to be found out of some.
  [[nodiscard]] bool has_unnamed() const;
  // It is this tenant's graph of this name; nothing where there is no such strike, or it is known. SYSTEM.
  Status name(const GraphHash& hash, const std::string& tenant, const std::string& graph);

  // GRAPH_QUARANTINED: the graph, or the tenant.
  [[nodiscard]] Status check(const GraphHash& hash, const std::string& tenant, const std::string& graph,
                             Clock::time_point now = Clock::now()) const;
  [[nodiscard]] std::vector<Strike> list() const;
  // Tenants that build nothing now.
  [[nodiscard]] std::vector<std::string> tenants(Clock::time_point now = Clock::now()) const;

  // Forgets strikes, and how many these were. By graph (text_of the hash): UNKNOWN_GRAPH where there is none;
  // of one tenant; all. SYSTEM.
  StatusOr<std::size_t> pardon_graphs(const std::vector<std::string>& hashes);
  StatusOr<std::size_t> pardon_tenant(const std::string& tenant);
  StatusOr<std::size_t> pardon_all();

private:
  using Strikes = std::map<GraphHash, Strike>;
  [[nodiscard]] std::uint32_t deaths_of(const std::string& tenant, Clock::time_point now) const;
  StatusOr<std::size_t> forget(const std::vector<GraphHash>& hashes);  // with the lock held

  StateLog* const log_;
  mutable std::mutex mutex_;
  Strikes strikes_;
};

// The entry of a graph's strike.
StateKey strike_key(const GraphHash& hash);

}  // namespace eagle::server
