// GraphRecords: what a session's graphs were built from, so that another worker can build them again and
// clients can save them, and what their descriptions are charged for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/graph/address.h"
#include "server/held_bytes.h"
#include "server/ledger.h"
#include "server/plane_budget.h"
#include "server/state_log.h"
#include "server/tenants.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace eagle::v1 {
class GraphDescription;
class GraphRecord;
class ParamsRecord;
class UpdateRequest;
}  // namespace eagle::v1

namespace eagle::server {

// Of a description without its planes and whose it is, so that it is known again in another session of that
// tenant, and what a tenant's graphs bring about is laid to nobody else. `described`: the description as
// bytes.
GraphHash hash_of(std::string_view described, const std::string& tenant);
GraphHash hash_of(const v1::GraphDescription& description, const std::string& tenant);

// `Message`: v1::UpdateRequest, v1::ParamsRecord. MALFORMED_GRAPH for one without a number.
template <typename Message>
StatusOr<std::vector<graph::ParamUpdate>> updates_of(const Message& message);
extern template StatusOr<std::vector<graph::ParamUpdate>> updates_of(const v1::UpdateRequest&);
extern template StatusOr<std::vector<graph::ParamUpdate>> updates_of(const v1::ParamsRecord&);

// Thread-safe. Each change is written to the log, where there is one, before the call returns.
//
// Charged to the budget, and counted for the tenant (may be null), is about what a graph takes: its
// description, which is here and in the journal, and the graph that was built from it; numbers twice.
// PLANE_BUDGET, QUOTA (tenant_plane_bytes).
class GraphRecords {
public:
  // What a graph takes, however small it is, for each node, and for each byte of its record; how they were
  // measured: docs/design/sessions.md.
  static constexpr std::uint64_t bytes_a_graph = 4096;
  static constexpr std::uint64_t bytes_a_node = 1024;
  static constexpr std::uint64_t bytes_a_described_byte = 12;

  GraphRecords(StateLog* log, std::uint64_t session, PlaneBudget& budget, std::shared_ptr<Tenant> tenant);
  ~GraphRecords();
  GraphRecords(const GraphRecords&) = delete;
  GraphRecords& operator=(const GraphRecords&) = delete;

  Status built(std::uint64_t graph, std::string_view described, std::uint32_t nodes);
  // Before the graph gets the numbers: whether there is room for them.
  Status reserve(std::uint64_t graph, const v1::UpdateRequest& request);
  Status updated(std::uint64_t graph, const v1::UpdateRequest& request);
  // The planes are another description's from now on; the numbers of Params are not.
  Status rebound(std::uint64_t graph, const v1::GraphDescription& description);
  Status released(std::uint64_t graph);
  // As the log has it already. BAD_MESSAGE.
  Status restored(const StateKey& key, const std::string& record);

  // As of the last change; both are there where the graph is, made for the caller: descriptions are kept as
  // bytes, which take a tenth of what messages do and are seldom read.
  struct Record {
    std::shared_ptr<const v1::GraphRecord> graph;
    std::shared_ptr<const v1::ParamsRecord> params;
  };
  StatusOr<Record> find(std::uint64_t graph) const;  // UNKNOWN_GRAPH

private:
  // Of one graph; bytes count twice.
  struct Costs {
    std::uint64_t graph = 0;
    std::uint64_t params = 0;
    std::uint64_t charged = 0;
    HeldBytes kept;
  };
  struct Kept {
    std::string graph;  // a v1::GraphRecord
    std::shared_ptr<const v1::ParamsRecord> params;
  };
  Status write(StateKind kind, std::uint64_t graph, std::string record);
  // What is more than was charged before. What is less is given back when the graph goes.
  Status charge(Costs& costs, std::uint64_t bytes);
  void charge_restored(Costs& costs, std::uint64_t bytes);

  StateLog* const log_;
  const std::uint64_t session_;
  PlaneBudget& budget_;
  const std::shared_ptr<Tenant> tenant_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Kept> records_;
  std::map<std::uint64_t, Costs> costs_;
};

}  // namespace eagle::server
