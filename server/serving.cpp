#include "server/serving.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "server/activation.h"
#include "server/fault_point.h"
#include "server/metrics_text.h"
#include "server/reload.h"

namespace eagle::server {
namespace {

// And what answers that are on their way may take, once nothing runs.
constexpr std::chrono::seconds last_answers{1};

// Work on a thread of its own, with a descriptor that becomes readable when it is done.
class Beside {
public:
  explicit Beside(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          work();
          ::eventfd_write(done_.get(), 1);
        }) {}
  [[nodiscard]] int done() const { return done_.get(); }

private:
  const UniqueFd done_{::eventfd(0, EFD_CLOEXEC)};
  std::jthread thread_;  // last: ends before what it uses
};

// By now everything has been cancelled, counted and told; what is never cut short, as a build or one piece of
// a copy, can still take long. It goes with the process, whose end is an orderly one.
void expect_end(const Beside& work, const std::function<std::string()>& what_runs) {
  if (wait_for(-1, work.done(), last_resort) == Event::second) return;
  spdlog::warn("ended in the middle of what is never cut short: {}", what_runs());
  std::_Exit(0);
}

// Whether the work is done; else there was an order to end, or the time is over.
bool done_in_time(const Beside& work, const EndOrders& orders, std::chrono::seconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const Event event = wait_for(orders.fd, work.done(), std::max(left, std::chrono::milliseconds(0)));
    if (event != Event::first) return event == Event::second;
    if (orders.take()) return false;
  }
}

// EAGLED_HEARTBEAT_MS is for tests, which cannot wait so long.
void set_heartbeat(Limits& limits) {
  const char* const said = std::getenv("EAGLED_HEARTBEAT_MS");
  if (said == nullptr || std::atoi(said) <= 0) return;
  constexpr int missed = 6;
  limits.heartbeat = std::chrono::milliseconds(std::atoi(said));
  limits.longest_silence = missed * limits.heartbeat;
}
}  // namespace

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) spdlog::warn("setrlimit: {}", std::strerror(errno));
}

Event wait_for(int first, int second, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    pollfd fds[] = {{first, POLLIN, 0}, {second, POLLIN, 0}};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const int wait_ms = timeout.count() < 0 ? -1 : static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    const int ready = ::poll(fds, 2, wait_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Event::none;
    return fds[0].revents != 0 ? Event::first : Event::second;
  }
}

// The unix socket, and gRPC behind it.
Status Serving::serve_unix(const ProgramOptions& options, UniqueFd listening,
                           const Surroundings& surroundings, std::function<void()> beat) {
  Access access;
  for (const ListenOptions& listener : options.listen) {
    if (listener.endpoint != options.unix_endpoint()) continue;
    EAGLE_ASSIGN_OR_RETURN(access, access_of(listener, options.tls, options.loaded_tokens));
  }
  EAGLE_ASSIGN_OR_RETURN(rpc_, RpcServer::start(*daemon_, surroundings));
  listener_ = std::make_unique<Listener>(
      *daemon_, std::move(listening), [&rpc = *rpc_](UniqueFd fd) { rpc.adopt(std::move(fd)); },
      std::move(access), std::move(beat));
  return {};
}

namespace {

std::vector<UniqueFd> sockets_named(std::string_view name, ListeningSockets& listening) {
  std::vector<UniqueFd> sockets;
  for (auto& [endpoint, fd] : listening) {
    if (endpoint == name) sockets.push_back(std::move(fd));
  }
  return sockets;
}

HttpAnswer metrics_answer(Daemon& daemon, const HttpRequest& request) {
  if (request.target.substr(0, request.target.find('?')) != "/metrics")
    return {404, "text/plain; charset=utf-8", "there is /metrics and nothing else\n"};
  return {200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(daemon)};
}

}  // namespace

void Serving::serve_http(const ProgramOptions& options, ListeningSockets& listening,
                         const Surroundings& surroundings) {
  Daemon& daemon = *daemon_;
  if (auto sockets = sockets_named(metrics_endpoint, listening); !sockets.empty()) {
    metrics_ = std::make_unique<HttpListener>(
        "metrics", std::move(sockets),
        [&daemon](const HttpRequest& request) { return metrics_answer(daemon, request); });
  }
  if (auto sockets = sockets_named(web_endpoint, listening); !sockets.empty()) {
    const auto address = tcp_address("dns:" + options.web);
    dashboard_ = std::make_unique<Web>(
        daemon, surroundings, Web::Access{{address.ok() ? address->host : ""}, options.loaded_tokens});
    web_ = std::make_unique<HttpListener>(
        "dashboard", std::move(sockets),
        [&web = *dashboard_](const HttpRequest& request) { return web.answer(request); });
  }
}

StatusOr<Serving> Serving::start(const ProgramOptions& options, ListeningSockets listening, Survival survival,
                                 Surroundings surroundings) {
  Serving serving;
  Daemon::Options daemon;
  daemon.threads = options.threads;
  daemon.plane_budget_bytes = options.plane_budget_bytes;
  EAGLE_ASSIGN_OR_RETURN(daemon.devices, chosen_devices(options.devices));
  daemon.device_budget_bytes = options.device_budget_bytes;
  daemon.limits = within_descriptors(options.limits, descriptors_allowed());
  if (daemon.limits.planes < options.limits.planes || daemon.limits.sessions < options.limits.sessions) {
    spdlog::warn("RLIMIT_NOFILE={} allows no more than planes={} sessions={}; raise it for more",
                 descriptors_allowed(), static_cast<std::size_t>(daemon.limits.planes),
                 static_cast<std::size_t>(daemon.limits.sessions));
  }
  daemon.compiler.timeout = std::chrono::seconds(options.compile_timeout_s);
  daemon.compiler.cache_directory = options.cache_directory;
  set_heartbeat(daemon.limits);
  daemon.log = std::move(survival.log);
  daemon.restored = std::move(survival.restored);
  daemon.ledger = std::move(survival.ledger);
  daemon.restores = std::move(survival.still_starts);
  daemon.replace_worker = std::move(survival.replace);
  EAGLE_ASSIGN_OR_RETURN(serving.daemon_, Daemon::create(std::move(daemon)));
  follow(options, *serving.daemon_);
  if (const Status cache = serving.daemon_->engine().compiler().disk_cache(); !cache.ok()) {
    spdlog::warn("compiled kernels are not kept: {}", cache.message());
  }
  UniqueFd unix_socket;
  for (auto& [endpoint, fd] : listening) {
    if (endpoint == options.unix_endpoint()) unix_socket = std::move(fd);
  }
  EAGLE_ASSIGN_OR_RETURN(serving.tcp_, TcpServing::open(options, listening));
  std::vector<std::string> endpoints = serving.tcp_->endpoints();
  if (unix_socket.valid()) endpoints.insert(endpoints.begin(), options.unix_endpoint());
  surroundings.listen = endpoints;
  serving.serve_http(options, listening, surroundings);
  std::function<void()> beat;
  if (survival.beat) {
    beat = [tell = std::move(survival.beat), &executor = serving.daemon_->executor()] {
      tell(executor.goes_round());
    };
  }
  EAGLE_RETURN_IF_ERROR(serving.serve_unix(options, std::move(unix_socket), surroundings, std::move(beat)));
  EAGLE_RETURN_IF_ERROR(serving.tcp_->start(*serving.daemon_, surroundings));
  serving.daemon_->watch_gpus(
      [&rpc = *serving.rpc_, &tcp = *serving.tcp_](const std::string& device, bool serves) {
        rpc.set_device(device, serves);
        tcp.set_device(device, serves);
      });
  std::string all;
  for (const std::string& endpoint : endpoints) all += (all.empty() ? "" : ", ") + endpoint;
  spdlog::info("eagled {} serves {} threads={} plane_budget={} bytes", EAGLE_VERSION, all,
               serving.daemon_->engine().threads(), serving.daemon_->info().plane_budget_bytes);
  return serving;
}

void Serving::clear() {
  if (daemon_) daemon_->watch_gpus({});
  web_.reset();
  metrics_.reset();
  dashboard_.reset();
  tcp_.reset();
  listener_.reset();
  rpc_.reset();
  daemon_.reset();
}

void Serving::stop(const EndOrders& orders, std::chrono::seconds drain) {
  // Who connects is told: by refusals of new work, and by health, which says so only when it is so.
  daemon_->begin_drain(drain);
  rpc_->set_serving(false);
  tcp_->set_serving(false);
  std::atomic<bool> hurry = false;
  {
    const Beside draining([&] { static_cast<void>(daemon_->stop(hurry)); });
    if (!done_in_time(draining, orders, drain)) {
      hurry.store(true);
      daemon_->wake();
      expect_end(draining, [this] { return daemon_->what_runs(); });
    }
  }
  listener_->stop_accepting();
  tcp_->stop_accepting();
  const std::string left = daemon_->what_runs();
  const Beside clearing([&] { clear(); });
  expect_end(clearing, [&] { return left; });
}

void Serving::hand_over(const EndOrders& orders, std::chrono::seconds drain) {
  spdlog::info("handing over: jobs={} sessions={}", daemon_->executor().admitted(),
               daemon_->sessions().size());
  fault_point("handover.begin");
  std::atomic<bool> hurry = false;
  {
    const Beside draining([&] { daemon_->hand_over(hurry); });
    if (!done_in_time(draining, orders, drain)) {
      hurry.store(true);
      daemon_->wake();
      expect_end(draining, [this] { return daemon_->what_runs(); });
    }
  }
  fault_point("handover.drained");
  listener_->stop_accepting();
  tcp_->stop_accepting();
  daemon_->attachments().leave_all();
  rpc_->answer_all(last_answers);
  tcp_->answer_all(last_answers);
  fault_point("handover.answered");
}

}  // namespace eagle::server
