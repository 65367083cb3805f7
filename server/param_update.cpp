#include "server/param_update.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/repeated_ptr_field.h>

#include <utility>
#include <vector>

#include "eagle/v1/graph.pb.h"
#include "server/loaded_graph.h"
#include "server/session.h"

namespace eagle::server {
namespace {

// Names are looked for in all nodes of a graph.
constexpr std::size_t quick_nodes = 256;

StatusOr<graph::ParamUpdate> update_of(const v1::ParamUpdate& message) {
  graph::ParamUpdate update;
  update.address.node = message.argument().node();
  if (message.argument().has_leaf()) update.address.leaf = message.argument().leaf();
  update.address.name = message.argument().name();
  switch (message.value().value_case()) {
    case v1::ParamValue::kReal:
      update.value = message.value().real();
      return update;
    case v1::ParamValue::kInteger:
      update.value = std::int64_t{message.value().integer()};
      return update;
    case v1::ParamValue::VALUE_NOT_SET:
      break;
  }
  return Status(Reason::malformed_graph, "update: expected a number for each Param, found none");
}

// An UpdateRequest, field by field: its class comes with gRPC's, which this layer does without.
struct Request {
  std::uint64_t graph = 0;
  google::protobuf::RepeatedPtrField<v1::ParamUpdate> params;

  bool parse(const std::string& bytes) {
    constexpr std::uint32_t graph_tag = 1 << 3 | 0;   // a varint
    constexpr std::uint32_t params_tag = 2 << 3 | 2;  // so many bytes
    google::protobuf::io::CodedInputStream input(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                 static_cast<int>(bytes.size()));
    while (const std::uint32_t tag = input.ReadTag()) {
      std::uint32_t size = 0;
      std::string one;
      if (tag == graph_tag) {
        if (!input.ReadVarint64(&graph)) return false;
      } else if (tag != params_tag || !input.ReadVarint32(&size) || size > bytes.size() ||
                 !input.ReadString(&one, static_cast<int>(size)) || !params.Add()->ParseFromString(one)) {
        return false;
      }
    }
    return input.ConsumedEntireMessage();
  }
};

}  // namespace

Status update_params(const Session& session, std::uint64_t id, const ParamUpdates& params) {
  EAGLE_ASSIGN_OR_RETURN(const auto graph, session.graph(id));
  std::vector<graph::ParamUpdate> updates;
  for (const v1::ParamUpdate& message : params) {
    EAGLE_ASSIGN_OR_RETURN(graph::ParamUpdate one, update_of(message));
    updates.push_back(std::move(one));
  }
  return graph->update(id, updates);
}

std::optional<Status> update_params_quickly(const Session& session, const std::string& bytes) {
  Request request;
  if (!request.parse(bytes)) {
    return Status(Reason::bad_message, "expected an UpdateRequest in the ring's slot, found other bytes");
  }
  const auto graph = session.graph(request.graph);
  if (graph.ok() && (*graph)->nodes() > quick_nodes) return std::nullopt;
  return update_params(session, request.graph, request.params);
}

}  // namespace eagle::server
