// TcpListener: accepts TCP connections and hands them to gRPC, with nothing read from them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/base/unique_fd.h"
#include "server/limits.h"
#include "server/sockets/tcp_socket.h"

namespace eagle::server {

// Owns one thread; nothing on it blocks.
class TcpListener {
public:
  // `hand_to_grpc` is called on the listener's thread.
  TcpListener(const Limits& limits, std::vector<TcpSocket> sockets,
              std::function<void(UniqueFd)> hand_to_grpc);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  // Thread-safe. What is connected stays connected.
  void stop_accepting();

private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace eagle::server
