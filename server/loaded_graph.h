// LoadedGraph: a built graph of a session, with the planes that it holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/engine.h"
#include "engine/graph/edges.h"
#include "server/limits.h"
#include "server/plane_store.h"

namespace eagle::v1 {
class GraphDescription;
class FetchRunRequest;
class PlaneDeclaration;
class RunDescription;
}  // namespace eagle::v1

namespace eagle::server {

// The planes of a description, found in a session: what the engine computes on, and what keeps it alive.
struct ResolvedPlanes {
  PlaneStore::Planes planes;             // without the client's private ones
  std::vector<run::PlaneMemory> memory;  // one a declaration
  std::vector<bool> read_only;           // one a declaration: granted for reading
  [[nodiscard]] bool some_read_only() const;
};
// READ_ONLY_ARRAY where a node of the graph, or a part of the run, writes a plane that was granted for
// reading.
Status refuse_writes(const graph::Graph& graph, const ResolvedPlanes& planes);
Status refuse_writes(const v1::RunDescription& run, const ResolvedPlanes& planes);
Status refuse_write(std::uint32_t plane, std::string_view who, const ResolvedPlanes& planes);
// UNKNOWN_PLANE names the declaration. `Description`: v1::GraphDescription, v1::RunDescription or what
// declares planes likewise.
template <typename Description>
StatusOr<ResolvedPlanes> resolve(const Description& description, const PlaneStore& store);
extern template StatusOr<ResolvedPlanes> resolve(const v1::GraphDescription&, const PlaneStore&);
extern template StatusOr<ResolvedPlanes> resolve(const v1::RunDescription&, const PlaneStore&);
extern template StatusOr<ResolvedPlanes> resolve(const v1::FetchRunRequest&, const PlaneStore&);

// BUSY: the graph of this id is running.
Status running(std::uint64_t graph);

class LoadedGraph {
public:
  // `launches`: those that the graph has seen under its id before.
  LoadedGraph(PlaneStore::Planes planes, std::unique_ptr<run::BuiltGraph> built, std::uint64_t launches = 0);
  LoadedGraph(const LoadedGraph&) = delete;
  LoadedGraph& operator=(const LoadedGraph&) = delete;

  [[nodiscard]] run::BuiltGraph& built() { return *built_; }
  [[nodiscard]] const run::BuiltGraph& built() const { return *built_; }
  [[nodiscard]] std::size_t nodes() const { return nodes_; }  // leaves
  [[nodiscard]] bool has_host_nodes() const { return has_host_nodes_; }

  // UNKNOWN_PLANE when the client has released a plane of this graph: the bytes are still there, but the
  // id may be somebody else's by now.
  [[nodiscard]] Status check_planes() const;
  // Of planes that the client has released, which may go with this graph.
  [[nodiscard]] std::uint64_t released_bytes() const;
  // The edges, where their number is bounded by something sensible: QUOTA (edge_touches).
  StatusOr<std::vector<graph::Edge>> edges(const Limits& limits) const;

  // New numbers for Params. BUSY while a launch runs.
  Status update(std::uint64_t id, const std::vector<graph::ParamUpdate>& updates);

  // One launch at a time: false when one is running.
  [[nodiscard]] bool begin_launch() { return !busy_.exchange(true, std::memory_order_acquire); }
  void end_launch(std::int64_t whole_replays);
  [[nodiscard]] std::uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }

private:
  PlaneStore::Planes planes_;  // outlive what is bound to them
  std::unique_ptr<run::BuiltGraph> built_;
  std::size_t nodes_ = 0;
  bool has_host_nodes_ = false;
  std::atomic<bool> busy_ = false;
  std::atomic<std::uint64_t> launches_ = 0;
};

}  // namespace eagle::server
