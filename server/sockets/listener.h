// Listener: accepts connections, finds out what they are, serves the side connections.
#pragma once

#include <functional>
#include <memory>

#include "engine/base/unique_fd.h"
#include "server/access.h"
#include "server/daemon.h"

namespace eagle::server {

// Owns one thread, which all side connections share; nothing on it blocks.
class Listener {
public:
  // `listening`: a descriptor that listens already, non-blocking; not valid: nobody connects here.
  // `hand_to_grpc` gets the connections that are not side connections, with nothing read from them, on the
  // listener's thread. `access`: who may open sessions here. `beat` is called there every half second, for
  // whoever wants to know that it still goes round.
  Listener(Daemon& daemon, UniqueFd listening, std::function<void(UniqueFd)> hand_to_grpc, Access access = {},
           std::function<void()> beat = {});
  ~Listener();  // closes every side connection, and with it its session
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Thread-safe. What is connected stays connected.
  void stop_accepting();

private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace eagle::server
