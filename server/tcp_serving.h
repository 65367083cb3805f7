// TcpServing: everything that serves TCP connections.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "server/access.h"
#include "server/daemon.h"
#include "server/options.h"
#include "server/sockets/tcp_socket.h"
#include "server/surroundings.h"

namespace eagle::server {

// Sockets that listen, each with the endpoint it was configured by.
using ListeningSockets = std::vector<std::pair<std::string, UniqueFd>>;
// Opens the sockets of all `dns:` listeners. BAD_ENDPOINT, SYSTEM.
StatusOr<ListeningSockets> open_tcp(const ProgramOptions& options);
// Those of `dns:` listeners, as clients would name them, with the ports that the system chose.
StatusOr<std::vector<std::string>> tcp_endpoints(const ListeningSockets& sockets);

// Thread-safe.
class TcpServing {
public:
  // For all `dns:` listeners. `sockets`: what `open_tcp` made; taken out of there. BAD_VALUE for files of TLS
  // that will not do; PERMISSION_DENIED, with the cure, where a socket would be reachable from other machines
  // without TLS and authentication (`insecure_i_know` turns that into a warning, once a minute).
  static StatusOr<std::unique_ptr<TcpServing>> open(const ProgramOptions& options, ListeningSockets& sockets);
  ~TcpServing();
  TcpServing(const TcpServing&) = delete;
  TcpServing& operator=(const TcpServing&) = delete;

  // As clients would name them, with the ports that the system chose.
  [[nodiscard]] std::vector<std::string> endpoints() const;
  // Begins to serve. The daemon outlives this object.
  Status start(Daemon& daemon, const Surroundings& surroundings);
  // As RpcServer::set_serving.
  void set_serving(bool serving);
  // As RpcServer::set_device.
  void set_device(const std::string& device, bool serves);
  // What is connected stays connected.
  void stop_accepting();
  // As RpcServer::answer_all.
  void answer_all(std::chrono::milliseconds patience);

private:
  class State;
  explicit TcpServing(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// How a listener knows who calls: as it was configured, else by what is there (a client CA, tokens).
// BAD_VALUE where what it needs is missing.
StatusOr<Access> access_of(const ListenOptions& listener, const TlsFiles& tls,
                           std::shared_ptr<const Tokens> tokens);

// The tokens that the options name, or null.
StatusOr<std::shared_ptr<Tokens>> tokens_of(const ProgramOptions& options);

}  // namespace eagle::server
