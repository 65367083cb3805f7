// GrpcConnections: how many connections gRPC has been handed that are still open, in all and by peer. gRPC
// itself neither bounds nor reports them, and each takes descriptors that planes need too.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/unique_fd.h"
#include "server/limits.h"

namespace eagle::server {

// For the thread that runs the io_context.
class GrpcConnections {
public:
  GrpcConnections(boost::asio::io_context& io, const Limits& limits);

  // Counts a connection until either side has closed it. False: one too many, or no descriptor is left to
  // watch it with; it must be closed. `peer` has at most `of_peer` of them.
  bool admit(int socket, const std::string& peer, std::size_t of_peer);
  // Of a unix socket: by process, and by user, who may have many processes.
  bool admit(int socket);
  void close();  // stops watching

private:
  // Who has it, under several names, and how many of that name may be.
  using Peers = std::vector<std::pair<std::string, std::size_t>>;
  struct Watched {
    UniqueFd socket;  // a duplicate: gRPC closes its own when it likes
    Peers peers;
  };
  bool admit(int socket, Peers peers);
  void wait();
  void drop_closed();
  void drop(int socket);

  const Limits& limits_;
  // An epoll of its own that waits for ends only: Asio would wake up for every byte.
  boost::asio::posix::stream_descriptor ends_;
  std::map<int, Watched> watched_;  // by the duplicate's number
  std::map<std::string, std::size_t> by_peer_;
};

}  // namespace eagle::server
