#include "server/tcp_serving.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "server/rpc/rpc_server.h"
#include "server/sockets/tcp_listener.h"
#include "server/tls_files.h"

namespace eagle::server {
namespace {

constexpr std::chrono::minutes reminder{1};

// Says again and again what is dangerous.
class Reminder {
public:
  explicit Reminder(std::string text)
      : text_(std::move(text)), thread_([this](const std::stop_token& stop) { work(stop); }) {}

private:
  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    do {
      spdlog::warn("{}", text_);
    } while (!wake_.wait_for(lock, stop, reminder, [] { return false; }) && !stop.stop_requested());
  }

  const std::string text_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace

class TcpServing::State {
public:
  struct One {
    std::string endpoint;
    std::vector<TcpSocket> sockets;
    Access access;
    std::unique_ptr<RpcServer> rpc;
    std::unique_ptr<TcpListener> listener;
  };
  ~State() {
    for (One& one : listeners) one.listener.reset();  // before what it hands connections to
  }

  std::vector<One> listeners;
  TlsFiles tls;
  std::unique_ptr<Reminder> warning;
};

StatusOr<Access> access_of(const ListenOptions& listener, const TlsFiles& tls,
                           std::shared_ptr<const Tokens> tokens) {
  const bool tcp = listener.endpoint.starts_with("dns:");
  Access access;
  access.tokens = std::move(tokens);
  if (!listener.identity.empty()) {
    access.identity = *identity_named(listener.identity);  // the options have checked it
  } else if (tcp) {
    access.identity = !tls.client_ca.empty() ? Identity::certificate
                      : access.tokens        ? Identity::token
                                             : Identity::anonymous;
  }
  const std::string who =
      "listener '" + listener.endpoint + "': identity = \"" + std::string(name_of(access.identity)) + "\"";
  if (tcp && access.identity == Identity::user) {
    return Status(Reason::bad_value,
                  who +
                      " is for unix sockets, where the kernel vouches for it; use certificate or "
                      "token");
  }
  if (!tcp && access.identity != Identity::user && access.identity != Identity::token) {
    return Status(Reason::bad_value, who + " is for TCP; use uid or token on a unix socket");
  }
  if (access.identity == Identity::token && !access.tokens) {
    return Status(Reason::bad_value, who + " needs tokens; give --tokens FILE");
  }
  if (access.identity == Identity::certificate && tls.client_ca.empty()) {
    return Status(Reason::bad_value, who + " needs --tls-client-ca FILE");
  }
  return access;
}

StatusOr<std::shared_ptr<Tokens>> tokens_of(const ProgramOptions& options) {
  if (options.tokens.empty()) return std::shared_ptr<Tokens>();
  return Tokens::load(options.tokens);
}

namespace {

// Empty where nothing is wrong with it.
std::string danger_of(const TcpSocket& socket, const Access& access, const TlsFiles& tls) {
  if (socket.loopback()) return {};
  const std::string where = socket.endpoint() + " can be reached from other machines ";
  if (!tls.used()) {
    return where +
           "and has no TLS: whoever is on the way reads and changes everything. Give --tls-cert and "
           "--tls-key, "
           "and --tls-client-ca or --tokens; or listen at dns:localhost:PORT";
  }
  if (access.identity == Identity::anonymous) {
    return where +
           "and asks nobody who they are. Give --tls-client-ca or --tokens; or listen at dns:localhost:PORT";
  }
  return {};
}

}  // namespace

StatusOr<ListeningSockets> open_tcp(const ProgramOptions& options) {
  ListeningSockets all;
  for (const ListenOptions& listener : options.listen) {
    if (!listener.endpoint.starts_with("dns:")) continue;
    EAGLE_ASSIGN_OR_RETURN(const TcpAddress address, tcp_address(listener.endpoint));
    EAGLE_ASSIGN_OR_RETURN(auto sockets, TcpSocket::open(address));
    for (TcpSocket& socket : sockets) all.emplace_back(listener.endpoint, std::move(socket).take());
  }
  return all;
}

StatusOr<std::vector<std::string>> tcp_endpoints(const ListeningSockets& sockets) {
  std::vector<std::string> all;
  for (const auto& [endpoint, fd] : sockets) {
    if (!endpoint.starts_with("dns:")) continue;
    UniqueFd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    EAGLE_ASSIGN_OR_RETURN(const TcpSocket socket, TcpSocket::adopt(std::move(copy)));
    all.push_back(socket.endpoint());
  }
  return all;
}

StatusOr<std::unique_ptr<TcpServing>> TcpServing::open(const ProgramOptions& options,
                                                       ListeningSockets& sockets) {
  auto state = std::make_unique<State>();
  state->tls = options.tls;
  EAGLE_RETURN_IF_ERROR(check(options.tls));
  std::string dangers;
  for (const ListenOptions& listener : options.listen) {
    if (!listener.endpoint.starts_with("dns:")) continue;
    State::One one;
    one.endpoint = listener.endpoint;
    EAGLE_ASSIGN_OR_RETURN(one.access, access_of(listener, options.tls, options.loaded_tokens));
    for (auto& [endpoint, fd] : sockets) {
      if (endpoint != listener.endpoint || !fd.valid()) continue;
      EAGLE_ASSIGN_OR_RETURN(TcpSocket socket, TcpSocket::adopt(std::move(fd)));
      one.sockets.push_back(std::move(socket));
    }
    for (const TcpSocket& socket : one.sockets) {
      const std::string danger = danger_of(socket, one.access, options.tls);
      if (danger.empty()) continue;
      if (!options.insecure_i_know) {
        return Status(Reason::permission_denied, danger + " (--insecure-i-know serves all the same)");
      }
      dangers += (dangers.empty() ? "" : "; ") + danger;
    }
    state->listeners.push_back(std::move(one));
  }
  if (!dangers.empty()) state->warning = std::make_unique<Reminder>("--insecure-i-know: " + dangers);
  return std::unique_ptr<TcpServing>(new TcpServing(std::move(state)));
}

TcpServing::TcpServing(std::unique_ptr<State> state) : state_(std::move(state)) {}

TcpServing::~TcpServing() = default;

std::vector<std::string> TcpServing::endpoints() const {
  std::vector<std::string> all;
  for (const State::One& one : state_->listeners) {
    for (const TcpSocket& socket : one.sockets) all.push_back(socket.endpoint());
  }
  return all;
}

Status TcpServing::start(Daemon& daemon, const Surroundings& surroundings) {
  for (State::One& one : state_->listeners) {
    EAGLE_ASSIGN_OR_RETURN(one.rpc, RpcServer::start_remote(daemon, surroundings, one.access, state_->tls));
    spdlog::info("TCP at {}: {}, callers known by {}", one.endpoint,
                 !state_->tls.used()             ? "in the clear"
                 : state_->tls.client_ca.empty() ? "TLS"
                                                 : "TLS with client certificates",
                 name_of(one.access.identity));
    one.listener =
        std::make_unique<TcpListener>(daemon.limits(), std::move(one.sockets),
                                      [&rpc = *one.rpc](UniqueFd fd) { rpc.adopt(std::move(fd)); });
  }
  return {};
}

void TcpServing::set_serving(bool serving) {
  for (State::One& one : state_->listeners) {
    if (one.rpc) one.rpc->set_serving(serving);
  }
}

void TcpServing::set_device(const std::string& device, bool serves) {
  for (State::One& one : state_->listeners) {
    if (one.rpc) one.rpc->set_device(device, serves);
  }
}

void TcpServing::answer_all(std::chrono::milliseconds patience) {
  for (State::One& one : state_->listeners) {
    if (one.rpc) one.rpc->answer_all(patience);
  }
}

void TcpServing::stop_accepting() {
  for (State::One& one : state_->listeners) {
    if (one.listener) one.listener->stop_accepting();
  }
}

}  // namespace eagle::server
