#include "server/sockets/tcp_listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <utility>

#include "server/log_limit.h"
#include "server/sockets/grpc_connections.h"
#include "server/sockets/listening_socket.h"

namespace eagle::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int tcp_accepts_a_turn = 64;

// What counts as one peer: an IPv4 address, or the network of an IPv6 one, of which a host may have any
// number of addresses.
std::string peer_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return {reinterpret_cast<const char*>(&v4.sin_addr), sizeof v4.sin_addr};
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return {reinterpret_cast<const char*>(&v6.sin6_addr), 8};
}

}  // namespace

class TcpListener::State {
public:
  State(const Limits& limits, std::vector<TcpSocket> sockets, std::function<void(UniqueFd)> hand_to_grpc)
      : limits_(limits),
        hand_to_grpc_(std::move(hand_to_grpc)),
        sockets_(std::move(sockets)),
        grpc_(io_, limits) {
    for (const TcpSocket& socket : sockets_) {
      Listening& one = listening_.emplace_back(io_);
      one.socket.assign(::dup(socket.fd()));
      wait(one);
    }
    sockets_.clear();
    thread_ = std::jthread([this] { io_.run(); });
  }

  ~State() {
    asio::post(io_, [this] {
      close_listening();
      grpc_.close();
      io_.stop();
    });
  }

  void stop_soon() {
    asio::post(io_, [this] { close_listening(); });
  }

private:
  struct Listening {
    explicit Listening(asio::io_context& io) : socket(io), pause(io) {}
    asio::posix::stream_descriptor socket;
    asio::steady_timer pause;
  };

  void wait(Listening& one) {
    one.socket.async_wait(one.socket.wait_read, [this, &one](error_code error) {
      if (!error && one.socket.is_open()) accept(one);
    });
  }

  void accept(Listening& one) {
    for (int i = 0; i < tcp_accepts_a_turn; ++i) {
      sockaddr_storage peer{};
      socklen_t size = sizeof peer;
      UniqueFd fd(::accept4(one.socket.native_handle(), reinterpret_cast<sockaddr*>(&peer), &size,
                            SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd.valid()) {
        admit(std::move(fd), peer);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        spdlog::warn("accept: {}; no connections for {} ms", std::strerror(errno),
                     pause_after_failure.count());
        one.pause.expires_after(pause_after_failure);
        one.pause.async_wait([this, &one](error_code error) {
          if (!error) wait(one);
        });
        return;
      }  // else one connection has failed before it was there
    }
    wait(one);
  }

  void admit(UniqueFd fd, const sockaddr_storage& peer) {
    constexpr int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!grpc_.admit(fd.get(), peer_of(peer), limits_.grpc_connections_per_address)) {
      if (const auto more = lines_.admit())
        spdlog::info("TCP connection closed: it is one too many (grpc_connections{{,_per_address}}){}",
                     *more);
      return;
    }
    hand_to_grpc_(std::move(fd));
  }

  void close_listening() {
    error_code ignored;
    for (Listening& one : listening_) {
      one.socket.close(ignored);
      one.pause.cancel();
    }
  }

  const Limits& limits_;
  const std::function<void(UniqueFd)> hand_to_grpc_;
  std::vector<TcpSocket> sockets_;
  asio::io_context io_;
  std::deque<Listening> listening_;
  GrpcConnections grpc_;
  LogLimit lines_;
  std::jthread thread_;  // last: ends before what it uses
};

TcpListener::TcpListener(const Limits& limits, std::vector<TcpSocket> sockets,
                         std::function<void(UniqueFd)> hand_to_grpc)
    : state_(std::make_unique<State>(limits, std::move(sockets), std::move(hand_to_grpc))) {}

TcpListener::~TcpListener() = default;

void TcpListener::stop_accepting() { state_->stop_soon(); }

}  // namespace eagle::server
