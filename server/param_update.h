// New numbers for the Params of a built graph, from a message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/status.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}
namespace eagle::v1 {
class ParamUpdate;
}

namespace eagle::server {

class Session;
using ParamUpdates = google::protobuf::RepeatedPtrField<v1::ParamUpdate>;

// All of them or, where one is refused, none. BUSY while the graph runs, UNKNOWN_GRAPH, and what
// run::BuiltGraph::update refuses.
Status update_params(const Session& session, std::uint64_t graph, const ParamUpdates& params);
// The same for an UpdateRequest (service.proto) as bytes, which nobody has looked at. Empty where it would
// take long: the graph is large.
std::optional<Status> update_params_quickly(const Session& session, const std::string& bytes);

}  // namespace eagle::server
