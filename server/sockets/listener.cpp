#include "server/sockets/listener.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "server/sockets/connection.h"
#include "server/sockets/grpc_connections.h"
#include "server/sockets/listening_socket.h"

namespace eagle::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Accepted at a time, so that connecting in a loop does not keep the thread from those that are connected.
constexpr int accepts_a_turn = 64;
// How often leases are looked at, and life is shown.
constexpr std::chrono::milliseconds tick_interval{500};

}  // namespace

class Listener::State final : public Connection::Owner {
public:
  State(Daemon& daemon, UniqueFd listening, std::function<void(UniqueFd)> hand_to_grpc, Access access,
        std::function<void()> beat)
      : daemon_(daemon),
        access_(std::move(access)),
        hand_to_grpc_(std::move(hand_to_grpc)),
        beat_(std::move(beat)),
        listening_(io_),
        pause_(io_),
        tick_(io_),
        grpc_connections_(io_, daemon.limits()) {
    if (listening.valid()) {
      listening_.assign(listening.release());
      wait();
    }
    tick();
    thread_ = std::jthread([this] { io_.run(); });
  }

  ~State() {
    asio::post(io_, [this] {
      stop_accepting();
      close_all();
      grpc_connections_.close();
      tick_.cancel();
      io_.stop();
    });
  }

  void stop_soon() {
    asio::post(io_, [this] { stop_accepting(); });
  }

  void hand_to_grpc(UniqueFd fd) override {
    if (grpc_connections_.admit(fd.get())) return hand_to_grpc_(std::move(fd));
    if (const auto more = daemon_.connection_lines().admit())
      spdlog::info("connection closed: it is one too many for gRPC (grpc_connections{{,_per_process}}){}",
                   *more);
  }
  void greeted(const Connection& connection) override {
    const auto number = number_of_.find(&connection);
    if (number != number_of_.end()) waiting_.erase(number->second);
  }
  void closed(const Connection& connection) override {
    const auto number = number_of_.find(&connection);
    if (number == number_of_.end()) return;
    waiting_.erase(number->second);
    connections_.erase(number->second);
    number_of_.erase(number);
  }

private:
  void wait() {
    listening_.async_wait(listening_.wait_read, [this](error_code error) {
      if (!error && listening_.is_open()) accept();
    });
  }

  void accept() {
    for (int i = 0; i < accepts_a_turn; ++i) {
      UniqueFd fd(::accept4(listening_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd.valid()) {
        admit(std::move(fd));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      } else if (errno != EINTR && errno != ECONNABORTED) {
        return pause();
      }
    }
    wait();
  }

  void tick() {
    daemon_.sessions().expire();
    daemon_.look_at_work();
    look_at_connections();
    daemon_.free_unused(daemon_.limits().recycled_age);
    daemon_.look_at_heap();
    daemon_.look_at_gpus();
    if (beat_) beat_();
    tick_.expires_after(tick_interval);
    tick_.async_wait([this](error_code error) {
      if (!error) tick();
    });
  }

  void look_at_connections() {
    const auto all = connections_;  // one that closes takes itself out
    for (const auto& [number, connection] : all) connection->look();
  }

  void pause() {
    spdlog::warn("accept: {}; no connections for {} ms", std::strerror(errno), pause_after_failure.count());
    daemon_.free_unused(std::chrono::seconds(0));  // most likely descriptors are out
    pause_.expires_after(pause_after_failure);
    pause_.async_wait([this](error_code error) {
      if (!error) wait();
    });
  }

  // Who connects and says nothing makes room for who comes after.
  void admit(UniqueFd fd) {
    if (waiting_.size() >= daemon_.limits().waiting_connections) {
      const auto oldest = connections_.at(*waiting_.begin());  // a copy: it takes itself out of the maps
      oldest->close();
    }
    const auto connection = Connection::make(io_, std::move(fd), daemon_, access_, *this);
    if (!connection) return spdlog::warn("connection closed: the system watches no more descriptors");
    const std::uint64_t number = ++last_number_;
    connections_.emplace(number, connection);
    number_of_.emplace(connection.get(), number);
    waiting_.insert(number);
    connection->start();
  }

  void stop_accepting() {
    error_code ignored;
    listening_.close(ignored);
    pause_.cancel();
  }

  void close_all() {
    const auto all = connections_;
    for (const auto& [number, connection] : all) connection->close();
  }

  Daemon& daemon_;
  const Access access_;
  const std::function<void(UniqueFd)> hand_to_grpc_;
  const std::function<void()> beat_;
  asio::io_context io_;
  // Numbered in the order of their arrival.
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections_;
  std::map<const Connection*, std::uint64_t> number_of_;
  std::set<std::uint64_t> waiting_;  // not yet known to be gRPC, nor a session
  asio::posix::stream_descriptor listening_;
  asio::steady_timer pause_;
  asio::steady_timer tick_;
  GrpcConnections grpc_connections_;
  std::jthread thread_;  // last: ends before what it uses
};

Listener::Listener(Daemon& daemon, UniqueFd listening, std::function<void(UniqueFd)> hand_to_grpc,
                   Access access, std::function<void()> beat)
    : state_(std::make_unique<State>(daemon, std::move(listening), std::move(hand_to_grpc), std::move(access),
                                     std::move(beat))) {}

Listener::~Listener() = default;

void Listener::stop_accepting() { state_->stop_soon(); }

}  // namespace eagle::server
