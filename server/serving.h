// Serving: a daemon with its transports, from its start to its orderly end.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "server/daemon.h"
#include "server/options.h"
#include "server/rpc/rpc_server.h"
#include "server/sockets/http_listener.h"
#include "server/sockets/listener.h"
#include "server/surroundings.h"
#include "server/tcp_serving.h"
#include "server/web/web.h"

namespace eagle::server {

// A descriptor that becomes readable with each order, and `take`, which reads one and says whether it is an
// order to end.
struct EndOrders {
  int fd = -1;
  std::function<bool()> take;
};

enum class Event { none, first, second };
// Waits for one of two descriptors to become readable; `none` after `timeout` (negative: no timeout).
Event wait_for(int first, int second, std::chrono::milliseconds timeout);

// What the end may take once everything has been cancelled, and again until all is freed.
constexpr std::chrono::seconds last_resort{10};

// Descriptors of clients and planes are many; the soft limit is for programs that still use select().
void raise_descriptor_limit();

class Serving {
public:
  // What a worker with a keeper has besides.
  struct Survival {
    std::shared_ptr<StateLog> log;
    RestoredState restored;
    std::unique_ptr<Ledger> ledger;
    std::function<void(bool goes_round)> beat;
    std::function<void()> still_starts;
    std::function<void(const std::string& why, const std::vector<BlamedGraph>& blamed)> replace;
  };
  // `listening`: the sockets of `options.listen`, by endpoint.
  static StatusOr<Serving> start(const ProgramOptions& options, ListeningSockets listening, Survival survival,
                                 Surroundings surroundings);
  Serving(Serving&&) = default;
  Serving& operator=(Serving&&) = delete;
  ~Serving() { clear(); }

  Daemon& daemon() { return *daemon_; }
  // Ends it: running work gets until `drain` is over or the next order, and is then cancelled.
  void stop(const EndOrders& orders, std::chrono::seconds drain);
  // Another worker goes on with the sessions: as Daemon::hand_over, with `drain` as in `stop`. Then nothing
  // is served any more, and the process is to end at once.
  void hand_over(const EndOrders& orders, std::chrono::seconds drain);

private:
  Serving() = default;
  Status serve_unix(const ProgramOptions& options, UniqueFd listening, const Surroundings& surroundings,
                    std::function<void()> beat);
  void serve_http(const ProgramOptions& options, ListeningSockets& listening,
                  const Surroundings& surroundings);
  void clear();

  // In the order in which they are made; they end in the opposite one.
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<RpcServer> rpc_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<TcpServing> tcp_;
  std::unique_ptr<Web> dashboard_;
  std::unique_ptr<HttpListener> metrics_;
  std::unique_ptr<HttpListener> web_;
};

}  // namespace eagle::server
