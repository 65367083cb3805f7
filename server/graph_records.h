// GraphRecords: what the state log says of a session's graphs, so that another worker can build them again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/graph/address.h"
#include "server/ledger.h"
#include "server/state_log.h"

namespace eagle::v1 {
class GraphDescription;
class GraphRecord;
class ParamsRecord;
class UpdateRequest;
}  // namespace eagle::v1

namespace eagle::server {

// Of a description without its planes, so that it is known again in another session.
GraphHash hash_of(const v1::GraphDescription& description);

// `Message`: v1::UpdateRequest, v1::ParamsRecord. MALFORMED_GRAPH for one without a number.
template <typename Message>
StatusOr<std::vector<graph::ParamUpdate>> updates_of(const Message& message);
extern template StatusOr<std::vector<graph::ParamUpdate>> updates_of(const v1::UpdateRequest&);
extern template StatusOr<std::vector<graph::ParamUpdate>> updates_of(const v1::ParamsRecord&);

// Thread-safe. Each change is written to the log before the call returns; without a log nothing is kept.
class GraphRecords {
public:
  GraphRecords(StateLog* log, std::uint64_t session);
  ~GraphRecords();
  GraphRecords(const GraphRecords&) = delete;
  GraphRecords& operator=(const GraphRecords&) = delete;

  Status built(std::uint64_t graph, const v1::GraphDescription& description, std::uint32_t nodes);
  Status updated(std::uint64_t graph, const v1::UpdateRequest& request);
  // The planes are another description's from now on; the numbers of Params are not.
  Status rebound(std::uint64_t graph, const v1::GraphDescription& description);
  Status released(std::uint64_t graph);
  // As the log has it already. BAD_MESSAGE.
  Status restored(const StateKey& key, const std::string& record);

  // What the log has; both are there where the graph is.
  struct Record {
    std::shared_ptr<const v1::GraphRecord> graph;
    std::shared_ptr<const v1::ParamsRecord> params;
  };
  StatusOr<Record> find(std::uint64_t graph) const;  // UNKNOWN_GRAPH

private:
  Status write(StateKind kind, std::uint64_t graph, std::string record);

  StateLog* const log_;
  const std::uint64_t session_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Record> records_;
};

}  // namespace eagle::server
