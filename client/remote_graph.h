// RemoteGraph: a graph that a daemon built for a session. For the .cpp files of this folder only.
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

// `session` 0: the connection's own.
StatusOr<std::string> picture_of(Connection& connection, std::uint64_t session, std::uint64_t graph,
                                 PictureFormat format);

// What became of `description`. `link`: the number of the one that it was built over.
std::unique_ptr<HostGraph> make_remote_graph(std::shared_ptr<Connection> connection,
                                             const v1::GraphDescription& description,
                                             const v1::BuildReply& built, std::uint64_t link);

}  // namespace eagle
