// RpcServer: gRPC over connections that somebody else accepted.
#pragma once

#include <chrono>
#include <memory>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "server/access.h"
#include "server/daemon.h"
#include "server/surroundings.h"
#include "server/tls_files.h"

namespace eagle::server {

class RpcServer {
public:
  static StatusOr<std::unique_ptr<RpcServer>> start(Daemon& daemon, Surroundings surroundings);
  // For TCP connections: they open their sessions here, TLS is gRPC's where there are certificates, and a
  // peer that does not answer is dropped. `files` have passed `check`, and are read anew when they change.
  static StatusOr<std::unique_ptr<RpcServer>> start_remote(Daemon& daemon, Surroundings surroundings,
                                                           const Access& access, const TlsFiles& files);
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Thread-safe. The connection must be non-blocking, with nothing read from it.
  void adopt(UniqueFd connection);
  // What grpc.health.v1 says of the daemon (""), of "eagled.ready" and of each "eagled.device.NAME": whether
  // they serve. They do from the start.
  void set_serving(bool serving);
  // Of one GPU ("cuda:0"), from then on. Thread-safe, as the above.
  void set_device(const std::string& device, bool serves);
  // Takes no more calls and waits until those that are under way are answered, or until `patience` is over.
  // The process is to end then: nothing else may be done with this object.
  void answer_all(std::chrono::milliseconds patience);
  // Closes every connection and cancels the calls on them. Returns when the last one is over; the daemon must
  // have ended its work before, or that waits for it.
  void shut_down();

private:
  struct State;
  // `remote`: null for connections of this machine's users.
  static StatusOr<std::unique_ptr<RpcServer>> start(Daemon& daemon, Surroundings surroundings,
                                                    const Access* remote, const TlsFiles& files);
  explicit RpcServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace eagle::server
