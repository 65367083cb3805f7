// The service: a saved graph over planes of a daemon, launched on a timer.
#pragma once

#include <eagle/client/graph_file.h>
#include <eagle/client/session.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/examples/service/metrics.h"

namespace boost::asio {
class io_context;
}

namespace example {

struct ServiceOptions {
  std::string graph;     // path of the file
  std::string endpoint;  // empty: as eagle::connect finds one
  std::chrono::milliseconds period{100};
  std::chrono::milliseconds deadline{50};  // of one launch
  // Planes of the file that are arrays of others: (plane, the name that somebody has published it under).
  std::vector<std::pair<std::string, std::string>> open = {};
  // The other planes get names, "PREFIX.plane", under which sessions of the same user can open them. Empty:
  // none.
  std::string publish = {};
};

// Everything happens in the thread that runs `io`; launches wait in threads of their own.
class Service {
public:
  // Reads the file: what is wrong with it is said now, what is wrong with the daemon at each tick.
  static eagle::StatusOr<std::unique_ptr<Service>> create(boost::asio::io_context& io, ServiceOptions options,
                                                          Metrics& metrics);
  ~Service();
  void start();
  void stop();  // the launch that runs is stopped, and no other begins

private:
  class State;
  explicit Service(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace example
