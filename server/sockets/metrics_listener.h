// MetricsListener: answers Prometheus over HTTP: GET /metrics.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/unique_fd.h"

namespace eagle::server {

// Owns one thread, on which `text` is called. A peer gets a few seconds for each request and each answer, and
// may go on asking; there are at most `most_connections`, and who comes above that makes room of the oldest.
// Requests have no body and small headers; what is no such request is answered so and hung up on.
class MetricsListener {
public:
  static constexpr std::size_t most_connections = 16;

  // `listening`: non-blocking sockets.
  MetricsListener(std::vector<UniqueFd> listening, std::function<std::string()> text);
  ~MetricsListener();
  MetricsListener(const MetricsListener&) = delete;
  MetricsListener& operator=(const MetricsListener&) = delete;

private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace eagle::server
