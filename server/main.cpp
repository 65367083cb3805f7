// eagled: the daemon program. What it does is in daemon.h; here it starts, waits and ends.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "server/access.h"
#include "server/confinement.h"
#include "server/daemon.h"
#include "server/options.h"
#include "server/rpc/rpc_server.h"
#include "server/sockets/listener.h"
#include "server/sockets/listening_socket.h"
#include "server/sockets/tcp_socket.h"
#include "server/tcp_serving.h"
#include "server/tls_files.h"

namespace eagle::server {
namespace {

// What the end may take once everything has been cancelled.
constexpr std::chrono::seconds last_resort{10};

Status failed(const char* call) { return {Reason::system, std::string(call) + ": " + std::strerror(errno)}; }

// Descriptors of clients and planes are many; the soft limit is for programs that still use select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) spdlog::warn("setrlimit: {}", std::strerror(errno));
}

// A descriptor of the one who started us; the processes that we start do not get it.
StatusOr<UniqueFd> inherited(int fd, const char* option) {
  if (fd < 0) return UniqueFd();
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    return Status(Reason::bad_value, std::string(option) + ": " + std::to_string(fd) +
                                         " is not an open descriptor; pass one that the daemon inherits");
  }
  return UniqueFd(fd);
}

// Tells whoever started us how it went. Nobody may be left to read it.
void report(UniqueFd& fd, std::string line) {
  if (!fd.valid()) return;
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  if (::write(fd.get(), line.data(), line.size()) < 0) spdlog::warn("--ready-fd: {}", std::strerror(errno));
  fd.reset();
}

// SIGTERM, SIGINT and SIGHUP as a descriptor. Blocked before any thread starts, so that none is interrupted.
StatusOr<UniqueFd> block_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGHUP);
  if (::pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) return failed("pthread_sigmask");
  ::signal(SIGPIPE, SIG_IGN);
  UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC));
  if (!fd.valid()) return failed("signalfd");
  return fd;
}

enum class Event { none, first, second };

// Waits for one of two descriptors to become readable; `none` after `timeout` (negative: no timeout).
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

// The number of the signal, or 0.
int take_signal(int signals) {
  signalfd_siginfo info{};
  if (::read(signals, &info, sizeof info) != sizeof info) return 0;
  spdlog::info("signal {} from pid {}", info.ssi_signo, info.ssi_pid);
  return static_cast<int>(info.ssi_signo);
}

// What may change without a restart. (gRPC itself looks whether the files of TLS have changed.)
void reload(const ProgramOptions& options) {
  if (const Status tls = check(options.tls); !tls.ok()) spdlog::error("SIGHUP: {}", tls.message());
  if (!options.loaded_tokens) return;
  const Status tokens = options.loaded_tokens->reload();
  if (tokens.ok()) {
    spdlog::info("SIGHUP: {} tokens", options.loaded_tokens->size());
  } else {
    spdlog::error("SIGHUP: the tokens stay as they were: {}", tokens.message());
  }
}

// Everything that serves, in the order in which it is made; it ends in the opposite one.
struct Server {
  std::unique_ptr<Daemon> daemon;
  std::unique_ptr<ListeningSocket> socket;
  std::unique_ptr<RpcServer> rpc;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<TcpServing> tcp;
  std::vector<std::string> endpoints;

  Server() = default;
  Server(Server&&) = default;
  Server& operator=(Server&&) = delete;
  ~Server() { clear(); }
  void clear() {
    tcp.reset();
    listener.reset();
    rpc.reset();
    socket.reset();
    daemon.reset();
  }
};

// The unix socket, and gRPC behind it.
Status serve_unix(Server& server, const ProgramOptions& options, const std::vector<std::string>& all) {
  const std::string endpoint = options.unix_endpoint();
  if (endpoint.empty()) return {};
  EAGLE_ASSIGN_OR_RETURN(const std::string path, unix_path(endpoint));
  Access access;
  for (const ListenOptions& listener : options.listen) {
    if (listener.endpoint != endpoint) continue;
    EAGLE_ASSIGN_OR_RETURN(access, access_of(listener, options.tls, options.loaded_tokens));
  }
  EAGLE_ASSIGN_OR_RETURN(ListeningSocket socket, ListeningSocket::open(path));
  server.socket = std::make_unique<ListeningSocket>(std::move(socket));
  EAGLE_ASSIGN_OR_RETURN(server.rpc, RpcServer::start(*server.daemon, all));
  UniqueFd listening(::fcntl(server.socket->fd(), F_DUPFD_CLOEXEC, 0));
  if (!listening.valid()) return failed("fcntl");
  server.listener = std::make_unique<Listener>(
      *server.daemon, std::move(listening), [&rpc = *server.rpc](UniqueFd fd) { rpc.adopt(std::move(fd)); },
      std::move(access));
  return {};
}

StatusOr<Server> start(const ProgramOptions& options) {
  if (!options.unix_endpoint().empty()) EAGLE_RETURN_IF_ERROR(unix_path(options.unix_endpoint()).status());
  raise_descriptor_limit();
  Server server;
  Daemon::Options daemon;
  daemon.threads = options.threads;
  daemon.plane_budget_bytes = options.plane_budget_bytes;
  daemon.compiler.timeout = std::chrono::seconds(options.compile_timeout_s);
  daemon.compiler.cache_directory = options.cache_directory;
  EAGLE_ASSIGN_OR_RETURN(server.daemon, Daemon::create(std::move(daemon)));
  if (const Status cache = server.daemon->engine().compiler().disk_cache(); !cache.ok()) {
    spdlog::warn("compiled kernels are not kept: {}", cache.message());
  }
  EAGLE_ASSIGN_OR_RETURN(server.tcp, TcpServing::open(options));
  server.endpoints = server.tcp->endpoints();
  if (const std::string endpoint = options.unix_endpoint(); !endpoint.empty()) {
    server.endpoints.insert(server.endpoints.begin(), endpoint);
  }
  EAGLE_RETURN_IF_ERROR(serve_unix(server, options, server.endpoints));
  EAGLE_RETURN_IF_ERROR(server.tcp->start(*server.daemon, server.endpoints));
  return server;
}

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

// By now everything has been cancelled; only a build can still take long.
void expect_end(const Beside& work) {
  if (wait_for(-1, work.done(), last_resort) == Event::second) return;
  spdlog::error("a build does not end; leaving it");
  std::_Exit(1);
}

// Ends the server: running work gets until the drain timeout or the next signal, and is then cancelled.
void stop(Server server, int signals, std::chrono::seconds drain) {
  if (server.listener) server.listener->stop_accepting();
  server.tcp->stop_accepting();
  server.daemon->begin_drain();
  spdlog::info("ending: jobs={} sessions={}", server.daemon->executor().admitted(),
               server.daemon->sessions().size());
  std::atomic<bool> hurry = false;
  {
    const Beside draining([&] { server.daemon->stop(hurry); });
    if (wait_for(signals, draining.done(), drain) != Event::second) {
      hurry.store(true);
      server.daemon->executor().wake();
      expect_end(draining);
    }
  }
  const Beside clearing([&] { server.clear(); });
  expect_end(clearing);
}

Status serve(const ProgramOptions& options, UniqueFd& ready) {
  EAGLE_ASSIGN_OR_RETURN(const UniqueFd owner, inherited(options.owner_fd, "--owner-fd"));
  EAGLE_ASSIGN_OR_RETURN(const UniqueFd signals, block_signals());
  EAGLE_ASSIGN_OR_RETURN(Server server, start(options));
  std::string all, tcp;
  for (const std::string& endpoint : server.endpoints) {
    all += (all.empty() ? "" : ", ") + endpoint;
    if (endpoint.starts_with("dns:")) tcp += " " + endpoint;
  }
  spdlog::info("eagled {} serves {} threads={} plane_budget={} bytes", EAGLE_VERSION, all,
               server.daemon->engine().threads(), server.daemon->info().plane_budget_bytes);
  report(ready, "ready" + tcp);

  bool owner_ended = false;
  int signal = SIGHUP;
  while (!owner_ended && signal == SIGHUP) {
    owner_ended = wait_for(signals.get(), owner.get(), std::chrono::milliseconds(-1)) == Event::second;
    if (owner_ended) break;
    signal = take_signal(signals.get());
    if (signal == SIGHUP) reload(options);
  }
  stop(std::move(server), signals.get(), std::chrono::seconds(owner_ended ? 0 : options.drain_timeout_s));
  return {};
}

// What was asked for in place of serving.
StatusOr<std::string> answer(const ProgramOptions& options) {
  if (!options.new_token.empty()) {
    EAGLE_ASSIGN_OR_RETURN(const Tokens::Made made, Tokens::make(options.new_token));
    return "token, for the client (it is shown this once): " + made.token +
           "\nline, for the file that --tokens names: " + made.line + "\n";
  }
  EAGLE_RETURN_IF_ERROR(check(options.tls));
  for (const ListenOptions& listener : options.listen) {
    const bool tcp = listener.endpoint.starts_with("dns:");
    EAGLE_RETURN_IF_ERROR(tcp ? tcp_address(listener.endpoint).status()
                              : unix_path(listener.endpoint).status());
    EAGLE_RETURN_IF_ERROR(access_of(listener, options.tls, options.loaded_tokens).status());
  }
  return options.print_config ? to_toml(options) : "the configuration is good\n";
}

Status run(ProgramOptions& options, UniqueFd& ready) {
  EAGLE_RETURN_IF_ERROR(confine());
  EAGLE_ASSIGN_OR_RETURN(options.loaded_tokens, tokens_of(options));
  if (!options.check_config && !options.print_config && options.new_token.empty())
    return serve(options, ready);
  EAGLE_ASSIGN_OR_RETURN(const std::string text, answer(options));
  std::fputs(text.c_str(), stdout);
  return std::fflush(stdout) == 0 ? Status() : failed("write");
}

}  // namespace
}  // namespace eagle::server

int main(int argc, char** argv) {
  using namespace eagle;
  server::ProgramOptions options;
  int exit_code = 0;
  if (!server::parse(argc, argv, options, exit_code)) return exit_code;
  spdlog::set_default_logger(spdlog::stderr_logger_mt("eagled"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  spdlog::set_level(spdlog::level::from_str(options.log_level));

  StatusOr<UniqueFd> ready = server::inherited(options.ready_fd, "--ready-fd");
  const Status status = ready.ok() ? server::run(options, *ready) : ready.status();
  if (status.ok()) return 0;
  spdlog::error("{}", status.to_string());
  if (ready.ok()) server::report(*ready, "error: " + status.message());
  return 1;
}
