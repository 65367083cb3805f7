// Graphs as they are executed, for whoever looks at them (proto/eagle/v1/inspect.proto).
#pragma once

#include <cstdint>
#include <memory>

#include "engine/base/status.h"
#include "server/daemon.h"

namespace eagle::v1 {
class DescribeGraphReply;
class DescribeGraphRequest;
class InspectReply;
class InspectRequest;
class ListKernelReply;
class ListKernelRequest;
}  // namespace eagle::v1

namespace eagle::server {

// The session of this id, as far as the caller may look into it; its own for `owner` 0. UNKNOWN_GRAPH.
StatusOr<std::shared_ptr<Session>> owner_of(Daemon& daemon, const std::shared_ptr<Session>& caller,
                                            std::uint64_t owner, std::uint64_t graph);

// A graph of the caller's own session (`owner` 0), or of one that it may look into; built again where the
// worker that built it has died. UNKNOWN_GRAPH.
StatusOr<std::shared_ptr<LoadedGraph>> graph_of(Daemon& daemon, Session& caller, std::uint64_t owner,
                                                std::uint64_t graph);

// From its record, so that nothing is built for it. UNKNOWN_GRAPH.
Status describe_graph(Daemon& daemon, Session& caller, const v1::DescribeGraphRequest& request,
                      v1::DescribeGraphReply& reply);
// UNKNOWN_GRAPH.
Status inspect(Daemon& daemon, Session& caller, const v1::InspectRequest& request, v1::InspectReply& reply);
// Compiles, as the caller's tenant, for machine code. UNKNOWN_GRAPH; BAD_VALUE for an index or a form that is
// not there; QUOTA (listing_bytes) for a text that is too long; what the compiler says.
Status list_kernel(Daemon& daemon, Session& caller, const v1::ListKernelRequest& request,
                   v1::ListKernelReply& reply);

}  // namespace eagle::server
