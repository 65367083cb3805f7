// RemoteGraph: a graph in an eagled.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/host.h"
#include "client/host_views.h"
#include "client/remote_connection.h"

namespace eagle {

template <typename Reply>  // BuildReply, RebindReply, GraphSummary
graph::ScratchLayout scratch_of(const Reply& reply) {
  graph::ScratchLayout layout;
  layout.bytes = reply.scratch_bytes();
  for (const v1::ScratchUse& use : reply.scratch()) {
    layout.uses.push_back({use.name(), 0, use.bytes(), use.in_memory(), use.offset()});
  }
  return layout;
}

// The picture of a graph as the daemon draws it. `session` 0: the connection's own.
StatusOr<std::string> picture_of(Connection& connection, std::uint64_t session, std::uint64_t graph,
                                 PictureFormat format);

// The graph that `built` tells of. `link`: the number of the one that it was built over.
std::unique_ptr<HostGraph> remote_graph(std::shared_ptr<Connection> connection, const v1::BuildReply& built,
                                        const v1::GraphDescription& description, HostViews host_views,
                                        std::uint64_t link);

}  // namespace eagle
