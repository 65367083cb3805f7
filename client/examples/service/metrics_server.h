// HTTP for a scraper, on the loopback interface: GET /metrics, and GET /healthz (200 while the service
// serves, else 503).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace boost::asio {
class io_context;
}

namespace example {

class MetricsServer {
public:
  struct Answers {
    std::function<std::string()> metrics;
    std::function<bool()> healthy;
  };
  // Answers in the thread that runs `io`. Port 0: any; throws boost::system::system_error where it is taken.
  MetricsServer(boost::asio::io_context& io, std::uint16_t port, Answers answers);
  ~MetricsServer();
  [[nodiscard]] std::uint16_t port() const;
  void close();  // takes no more peers

private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace example
