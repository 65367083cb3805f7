#include "server/sockets/grpc_connections.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <array>
#include <utility>

#include "server/principal.h"

namespace eagle::server {

using boost::system::error_code;

GrpcConnections::GrpcConnections(boost::asio::io_context& io, const Limits& limits)
    : limits_(limits), ends_(io) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  error_code error;
  if (epoll.valid()) ends_.assign(epoll.get(), error);
  if (!ends_.is_open()) return;  // then none is admitted
  static_cast<void>(epoll.release());
  wait();
}

// Processes of other pid namespaces are all number 0 here: these are bounded by their user, and together with
// everybody, as is whoever has no uid here.
bool GrpcConnections::admit(int socket) {
  const auto principal = principal_of(socket);
  Peers peers;
  if (principal.ok()) {
    peers.emplace_back(principal->text(), limits_.grpc_connections_per_user);
    if (principal->pid != 0)
      peers.emplace_back("pid:" + std::to_string(principal->pid), limits_.grpc_connections_per_process);
  }
  return admit(socket, std::move(peers));
}

bool GrpcConnections::admit(int socket, const std::string& peer, std::size_t of_peer) {
  return admit(socket, Peers{{peer, of_peer}});
}

bool GrpcConnections::admit(int socket, Peers peers) {
  if (watched_.size() >= limits_.grpc_connections || !ends_.is_open()) return false;
  for (const auto& [peer, most] : peers) {
    const auto known = by_peer_.find(peer);
    if (known != by_peer_.end() && known->second >= most) return false;
  }
  Watched watched{UniqueFd(::fcntl(socket, F_DUPFD_CLOEXEC, 0)), std::move(peers)};
  const int number = watched.socket.get();
  epoll_event ends_only{};  // an error or the end of both directions is told unasked
  ends_only.data.fd = number;
  if (number < 0 || ::epoll_ctl(ends_.native_handle(), EPOLL_CTL_ADD, number, &ends_only) != 0) return false;
  for (const auto& [peer, most] : watched.peers) ++by_peer_[peer];
  watched_.emplace(number, std::move(watched));
  return true;
}

void GrpcConnections::wait() {
  ends_.async_wait(ends_.wait_read, [this](error_code error) {
    if (error || !ends_.is_open()) return;
    drop_closed();
    wait();
  });
}

// What is left is told by the next wait.
void GrpcConnections::drop_closed() {
  std::array<epoll_event, 64> ended{};
  const int count = ::epoll_wait(ends_.native_handle(), ended.data(), static_cast<int>(ended.size()), 0);
  for (int i = 0; i < count; ++i) drop(ended[static_cast<std::size_t>(i)].data.fd);
}

void GrpcConnections::drop(int socket) {
  const auto found = watched_.find(socket);
  for (const auto& [name, most] : found->second.peers) {
    const auto peer = by_peer_.find(name);
    if (--peer->second == 0) by_peer_.erase(peer);
  }
  // By hand: gRPC's own descriptor would keep it in the epoll.
  ::epoll_ctl(ends_.native_handle(), EPOLL_CTL_DEL, socket, nullptr);
  watched_.erase(found);
}

void GrpcConnections::close() {
  error_code ignored;
  ends_.close(ignored);
}

}  // namespace eagle::server
