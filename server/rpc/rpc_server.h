// RpcServer: gRPC over connections that somebody else accepted.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "server/daemon.h"

namespace eagle::server {

class RpcServer {
public:
  static StatusOr<std::unique_ptr<RpcServer>> start(Daemon& daemon, std::vector<std::string> listen);
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Thread-safe. The connection must be non-blocking, with nothing read from it.
  void adopt(UniqueFd connection);
  // Closes every connection and cancels the calls on them. Returns when the last one is over; the daemon must
  // have ended its work before, or that waits for it.
  void shut_down();

private:
  struct State;
  explicit RpcServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace eagle::server
