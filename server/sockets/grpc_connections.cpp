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
  if (!epoll.valid()) return;  // then none is admitted
  ends_.assign(epoll.release());
  wait();
}

bool GrpcConnections::admit(int socket) {
  if (watched_.size() >= limits_.grpc_connections || !ends_.is_open()) return false;
  const auto principal = principal_of(socket);
  // Processes of other pid namespaces are all number 0 here: these are bounded together with everybody.
  const pid_t pid = principal.ok() ? principal->pid : 0;
  const auto of_process = by_process_.find(pid);
  if (pid != 0 && of_process != by_process_.end() &&
      of_process->second >= limits_.grpc_connections_per_process) {
    return false;
  }
  Watched watched{UniqueFd(::fcntl(socket, F_DUPFD_CLOEXEC, 0)), pid};
  const int number = watched.socket.get();
  epoll_event ends_only{};  // an error or the end of both directions is told unasked
  ends_only.data.fd = number;
  if (number < 0 || ::epoll_ctl(ends_.native_handle(), EPOLL_CTL_ADD, number, &ends_only) != 0) return false;
  watched_.emplace(number, std::move(watched));
  ++by_process_[pid];
  return true;
}

void GrpcConnections::wait() {
  ends_.async_wait(ends_.wait_read, [this](error_code error) {
    if (error) return;
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
  const auto process = by_process_.find(found->second.pid);
  if (--process->second == 0) by_process_.erase(process);
  // By hand: gRPC's own descriptor would keep it in the epoll.
  ::epoll_ctl(ends_.native_handle(), EPOLL_CTL_DEL, socket, nullptr);
  watched_.erase(found);
}

void GrpcConnections::close() {
  error_code ignored;
  ends_.close(ignored);
}

}  // namespace eagle::server
