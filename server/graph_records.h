// GraphRecords: what a session's graphs were built from, so that another worker can build them again and
// clients can save them, and what their descriptions are charged for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
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
// tenant, and what a tenant's graphs bring about is laid to nobody else.
GraphHash hash_of(const v1::GraphDescription& description, const std::string& tenant);

// `Message`: v1::UpdateRequest, v1::ParamsRecord. MALFORMED_GRAPH for one without a number.
template <typename Message>
StatusOr<std::vector<graph::ParamUpdate>> updates_of(const Message& message);
extern template StatusOr<std::vector<graph::ParamUpdate>> updates_of(const v1::UpdateRequest&);
extern template StatusOr<std::vector<graph::ParamUpdate>> updates_of(const v1::ParamsRecord&);

// Thread-safe. Each change is written to the log, where there is one, before the call returns.
//
// A description and its numbers are charged to the budget and count for the tenant (may be null) twice: they
// are here, and in the journal or, without one, in the graph that was built. PLANE_BUDGET, QUOTA
// (tenant_plane_bytes).
class GraphRecords {
public:
  GraphRecords(StateLog* log, std::uint64_t session, PlaneBudget& budget, std::shared_ptr<Tenant> tenant);
  ~GraphRecords();
  GraphRecords(const GraphRecords&) = delete;
  GraphRecords& operator=(const GraphRecords&) = delete;

  Status built(std::uint64_t graph, const v1::GraphDescription& description, std::uint32_t nodes);
  // Before the graph gets the numbers: whether there is room for them.
  Status reserve(std::uint64_t graph, const v1::UpdateRequest& request);
  Status updated(std::uint64_t graph, const v1::UpdateRequest& request);
  // The planes are another description's from now on; the numbers of Params are not.
  Status rebound(std::uint64_t graph, const v1::GraphDescription& description);
  Status released(std::uint64_t graph);
  // As the log has it already. BAD_MESSAGE.
  Status restored(const StateKey& key, const std::string& record);

  // As of the last change; both are there where the graph is.
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
  Status write(StateKind kind, std::uint64_t graph, const google::protobuf::Message& record);
  // What is more than was charged before. What is less is given back when the graph goes.
  Status charge(Costs& costs, std::uint64_t bytes);
  void charge_restored(Costs& costs, std::uint64_t bytes);

  StateLog* const log_;
  const std::uint64_t session_;
  PlaneBudget& budget_;
  const std::shared_ptr<Tenant> tenant_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Record> records_;
  std::map<std::uint64_t, Costs> costs_;
};

}  // namespace eagle::server
