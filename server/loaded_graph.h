// LoadedGraph: a built graph of a session, with the planes that it holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/given_up.h"
#include "engine/base/status.h"
#include "engine/engine.h"
#include "engine/graph/edges.h"
#include "engine/run/cuda/graph_backend.h"
#include "server/footprint.h"
#include "server/ledger.h"
#include "server/limits.h"
#include "server/plane_store.h"
#include "server/tenants.h"
#include "server/torn_planes.h"

namespace eagle::v1 {
class GraphDescription;
class FetchRunRequest;
class PlaneDeclaration;
class RunDescription;
}  // namespace eagle::v1

namespace eagle::server {

// The planes of a description, found in a session: what the engine computes on, and what keeps it alive.
struct ResolvedPlanes {
  PlaneStore::Planes planes;                       // without the client's private ones
  std::vector<run::PlaneMemory> memory;            // one a declaration
  std::vector<bool> read_only;                     // one a declaration: granted for reading
  std::vector<std::shared_ptr<PlaneBytes>> bytes;  // one a declaration; null: the client's private ones
  // Null: in memory of the host, or none.
  [[nodiscard]] std::shared_ptr<const GpuMemory> gpu(std::size_t plane) const {
    return bytes[plane] == nullptr ? nullptr : bytes[plane]->gpu();
  }
  [[nodiscard]] bool some_read_only() const;
  // Where some lie on a GPU: all of them, for a graph or a run there. MIXED_DEVICES where two lie on two
  // GPUs, by the names of all four.
  [[nodiscard]] StatusOr<std::optional<run::cuda::PlanesOnDevice>> on_device() const;
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
  // The UUID of the GPU that it runs on; empty: on the CPU.
  [[nodiscard]] const std::string& gpu() const { return gpu_; }
  [[nodiscard]] const GraphHash& hash() const { return hash_; }

  // UNKNOWN_PLANE when the client has released a plane of this graph: the bytes are still there, but the
  // id may be somebody else's by now.
  [[nodiscard]] Status check_planes() const;
  // Whether a plane of it has half written arrays. Quick: launches ask it each time.
  [[nodiscard]] bool has_torn_planes() const;
  // PLANE_TORN when a launch may read such an array before it has written all of it; names node and array.
  [[nodiscard]] Status check_torn() const;
  // After a whole replay: what it surely wrote is half written no more.
  void note_whole_replay() const;
  // A replay was given up part way: marks everything that the graph writes, and says so for an error's text.
  std::string mark_torn() const;
  // Of planes that the client has released, which may go with this graph.
  [[nodiscard]] std::uint64_t released_bytes() const;
  // The edges, where their number is bounded by something sensible: QUOTA (edge_touches); CANCELLED where
  // they are given up.
  StatusOr<std::vector<graph::Edge>> edges(const Limits& limits, const GivenUp& given_up = {}) const;

  // What it counts as, for as long as it lives.
  void keep(Tenant::Share share) { share_ = std::move(share); }
  Tenant::Share take_share() { return std::exchange(share_, {}); }
  // Which bytes its launches touch.
  [[nodiscard]] const std::shared_ptr<const Footprint>& footprint() const { return footprint_; }

  // New numbers for Params. BUSY while a launch runs. `then` is called before the next one may.
  Status update(std::uint64_t id, const std::vector<graph::ParamUpdate>& updates,
                const std::function<Status()>& then = {});

  // Where its launches are noted; null: nowhere. Before the first one.
  void note_in(Ledger* ledger, std::uint64_t session, const GraphHash& hash);

  // One launch at a time: false when one is running.
  [[nodiscard]] bool begin_launch() { return !busy_.exchange(true, std::memory_order_acquire); }
  // Around the computing of one that has begun: whether the worker's death would be laid to it.
  void computes(bool now);
  void end_launch(std::int64_t whole_replays);
  [[nodiscard]] std::uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }

private:
  [[nodiscard]] TornMarks torn_marks() const;

  PlaneStore::Planes planes_;     // outlive what is bound to them
  std::vector<Plane*> by_index_;  // by plane of the graph; null for the client's private ones and scratch
  std::unique_ptr<run::BuiltGraph> built_;
  std::shared_ptr<const Footprint> footprint_;
  Tenant::Share share_;
  std::size_t nodes_ = 0;
  bool has_host_nodes_ = false;
  std::string gpu_;
  Ledger* ledger_ = nullptr;
  std::uint64_t session_ = 0;
  GraphHash hash_{};
  std::vector<Ledger::Range> written_;
  std::optional<Ledger::Line> line_;  // of the launch that runs
  std::atomic<bool> busy_ = false;
  std::atomic<std::uint64_t> launches_ = 0;
};

}  // namespace eagle::server
