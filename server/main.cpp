// eagled: the daemon program. What it does is in daemon.h; here it becomes one of three processes: a keeper,
// a keeper's worker, or with --no-keeper both in one.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "engine/run/spin_limit.h"
#include "server/activation.h"
#include "server/config_file.h"
#include "server/confinement.h"
#include "server/fault_point.h"
#include "server/handed_text.h"
#include "server/health_query.h"
#include "server/keeper/exchange.h"
#include "server/keeper/keeper.h"
#include "server/keeper/worker_link.h"
#include "server/log_format.h"
#include "server/log_sink.h"
#include "server/options.h"
#include "server/recent_log.h"
#include "server/reload.h"
#include "server/serving.h"
#include "server/sockets/listening_socket.h"
#include "server/sockets/tcp_socket.h"
#include "server/tcp_serving.h"
#include "server/worker_descriptors.h"

namespace eagle::server {
namespace {

Status failed(const char* call) { return {Reason::system, std::string(call) + ": " + std::strerror(errno)}; }

// A descriptor of the one who started us; the processes that we start do not get it.
StatusOr<UniqueFd> inherited(int fd, const char* option) {
  if (fd < 0) return UniqueFd();
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    return Status(Reason::bad_value, std::string(option) + ": " + std::to_string(fd) +
                                         " is not an open descriptor; pass one that the daemon inherits");
  }
  return UniqueFd(fd);
}

// SIGTERM, SIGINT, SIGHUP and SIGUSR2 as a descriptor. Blocked before any thread starts, so that none is
// interrupted.
StatusOr<UniqueFd> block_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGHUP);
  ::sigaddset(&signals, SIGUSR2);
  if (::pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) return failed("pthread_sigmask");
  ::signal(SIGPIPE, SIG_IGN);
  UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC));
  if (!fd.valid()) return failed("signalfd");
  return fd;
}

// The number of the signal, or 0.
int take_signal(int signals) {
  signalfd_siginfo info{};
  if (::read(signals, &info, sizeof info) != sizeof info) return 0;
  spdlog::info("signal {} from pid {}", info.ssi_signo, info.ssi_pid);
  return static_cast<int>(info.ssi_signo);
}

// Everything that the options name, listening. `unix_socket` removes its file when it goes.
struct Listening {
  std::unique_ptr<ListeningSocket> unix_socket;
  ListeningSockets sockets;
  std::string ready_line = "ready";  // and the TCP endpoints
};
// For the daemon, beside what removes its file.
Status add_unix_socket(Listening& made, const std::string& endpoint, ListeningSocket socket) {
  made.unix_socket = std::make_unique<ListeningSocket>(std::move(socket));
  UniqueFd copy(::fcntl(made.unix_socket->fd(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return failed("fcntl");
  made.sockets.emplace_back(endpoint, std::move(copy));
  return {};
}
StatusOr<Listening> listen(const ProgramOptions& options) {
  Listening made;
  const std::string endpoint = options.unix_endpoint();
  std::string path;
  if (!endpoint.empty()) {
    EAGLE_ASSIGN_OR_RETURN(path, unix_path(endpoint));
  }
  EAGLE_ASSIGN_OR_RETURN(std::vector<PassedSocket> passed, passed_sockets());
  EAGLE_ASSIGN_OR_RETURN(made.sockets, listening_sockets(options, std::move(passed)));
  bool unix_passed = false;
  for (const auto& [name, fd] : made.sockets) unix_passed |= !endpoint.empty() && name == endpoint;
  EAGLE_ASSIGN_OR_RETURN(const auto tcp, tcp_endpoints(made.sockets));
  for (const std::string& one : tcp) made.ready_line += " " + one;
  if (endpoint.empty() || unix_passed) return made;
  EAGLE_ASSIGN_OR_RETURN(ListeningSocket socket, ListeningSocket::open(path));
  EAGLE_RETURN_IF_ERROR(add_unix_socket(made, endpoint, std::move(socket)));
  return made;
}

// The same where the keeper before this one listened: what the options still name stays as it is. There is
// nobody left to refuse to, so what cannot be had is only told.
StatusOr<Listening> go_on_listening(const ProgramOptions& options, Inherited& inherited) {
  ProgramOptions wanted = options;  // what is not there yet
  Listening made;
  for (auto& [endpoint, socket] : inherited.listening) {
    const bool stays =
        std::erase_if(wanted.listen, [&](const auto& one) { return one.endpoint == endpoint; }) > 0 ||
        std::any_of(made.sockets.begin(), made.sockets.end(),
                    [&](const auto& one) { return one.first == endpoint; });  // an address of several
    const HttpService* const http = http_service(endpoint);
    if (http != nullptr && !(options.*http->address).empty()) {
      (wanted.*http->address).clear();
      made.sockets.emplace_back(endpoint, std::move(socket));
      continue;
    }
    if (!endpoint.starts_with("unix:")) {
      if (stays) made.sockets.emplace_back(endpoint, std::move(socket));
      continue;
    }
    EAGLE_ASSIGN_OR_RETURN(std::string path, unix_path(endpoint));
    auto adopted = ListeningSocket::adopt(std::move(socket), std::move(path), inherited.socket_device,
                                          inherited.socket_inode);
    if (stays) EAGLE_RETURN_IF_ERROR(add_unix_socket(made, endpoint, std::move(adopted)));
  }
  const bool all_there = std::all_of(std::begin(http_services), std::end(http_services),
                                     [&](const auto& service) { return (wanted.*service.address).empty(); });
  if (wanted.listen.empty() && all_there) return made;
  auto more = listen(wanted);
  if (!more.ok()) spdlog::error("{}", more.status().message());
  if (!more.ok()) return made;
  for (auto& socket : more->sockets) made.sockets.push_back(std::move(socket));
  if (more->unix_socket) made.unix_socket = std::move(more->unix_socket);
  return made;
}

// ---- what all of them have

// Everything that is logged goes to stderr, and is remembered for a while, by a worker where its keeper does.
struct LogSinks {
  std::shared_ptr<RecentLog> recent;  // null where there is no memory for it
};
LogSinks start_log(const ProgramOptions& options) {
  LogSinks sinks;
  auto recent = options.worker ? RecentLog::open(UniqueFd(worker_log_fd)) : RecentLog::create();
  if (recent.ok()) sinks.recent = *std::move(recent);
  std::vector<spdlog::sink_ptr> all = {std::make_shared<LogSink>(STDERR_FILENO)};
  if (sinks.recent) all.push_back(sinks.recent);
  const auto logger = std::make_shared<spdlog::logger>("eagled", all.begin(), all.end());
  logger->set_formatter(std::make_unique<LogFormat>(options.log_format == "json" ? LogFormat::Kind::json
                                                                                 : LogFormat::Kind::text));
  spdlog::set_default_logger(logger);
  spdlog::set_level(spdlog::level::from_str(options.log_level));
  return sinks;
}

// The configuration that holds: of one thread that reloads it, and as text of all.
class Configuration {
public:
  explicit Configuration(ProgramOptions& options) : options_(options), text_(to_toml(options)) {}

  // What is wrong, which the log says as well; else empty.
  std::string reload(Daemon& daemon, const std::optional<std::string>& text = std::nullopt) {
    const Status done = server::reload(options_, daemon, text);
    if (!done.ok()) {
      spdlog::error("reload: the configuration stays as it was: {}", done.message());
      return done.message();
    }
    std::string fresh = to_toml(options_);
    const std::lock_guard lock(mutex_);
    text_ = std::move(fresh);
    return {};
  }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

private:
  ProgramOptions& options_;
  mutable std::mutex mutex_;
  std::string text_;
};

Surroundings surroundings_of(const std::shared_ptr<Configuration>& configuration, const LogSinks& log) {
  Surroundings surroundings;
  surroundings.configuration = [configuration] { return configuration->text(); };
  if (log.recent) {
    surroundings.recent_log = [recent = log.recent](std::size_t most) { return recent->newest(most); };
  }
  return surroundings;
}

// ---- one process

Status serve_alone(ProgramOptions& options, UniqueFd& ready, const LogSinks& log) {
  Notifier notifier = Notifier::from_environment();
  EAGLE_ASSIGN_OR_RETURN(const UniqueFd owner, inherited(options.owner_fd, "--owner-fd"));
  EAGLE_ASSIGN_OR_RETURN(const UniqueFd signals, block_signals());
  raise_descriptor_limit();
  EAGLE_ASSIGN_OR_RETURN(Listening listening, listen(options));
  const auto configuration = std::make_shared<Configuration>(options);
  Surroundings surroundings = surroundings_of(configuration, log);
  // By the signal that an operator would send; how long work gets is noted before.
  std::atomic<std::int64_t> drain_s = -1;
  surroundings.end = [&drain_s](std::optional<std::uint32_t> within_s) {
    if (within_s) drain_s = *within_s;
    ::kill(::getpid(), SIGTERM);
  };
  EAGLE_ASSIGN_OR_RETURN(Serving serving,
                         Serving::start(options, std::move(listening.sockets), {}, surroundings));
  report(ready, listening.ready_line);
  notifier.ready("serving");

  bool owner_ended = false;
  int signal = SIGHUP;
  while (!owner_ended && (signal == SIGHUP || signal == SIGUSR2)) {
    owner_ended = wait_for(signals.get(), owner.get(), std::chrono::milliseconds(-1)) == Event::second;
    if (owner_ended) break;
    signal = take_signal(signals.get());
    if (signal == SIGHUP) {
      notifier.reloading();
      const std::string wrong = configuration->reload(serving.daemon());
      notifier.ready(wrong.empty() ? "serving" : "reload: " + wrong);
    }
    if (signal == SIGUSR2) {
      spdlog::error(
          "only a keeper can be exchanged for another program, and this daemon has none "
          "(--no-keeper); restart it, which loses what clients hold");
    }
  }
  const std::int64_t time_s = drain_s >= 0 ? drain_s.load() : options.drain_timeout_s;
  notifier.stopping("draining", std::chrono::seconds(time_s) + 2 * last_resort);
  serving.stop({signals.get(), [&] { return take_signal(signals.get()) != SIGHUP; }},
               std::chrono::seconds(owner_ended ? 0 : time_s));
  return {};
}

// ---- the keeper

// What is wrong with the files that it names the worker says.
StatusOr<KeeperOptions::Reload> configuration_now(const ProgramOptions& options) {
  EAGLE_ASSIGN_OR_RETURN(const ProgramOptions wanted, parse_again(options));
  KeeperOptions::Reload reload;
  EAGLE_ASSIGN_OR_RETURN(reload.configuration, hand_over(wanted.config_text, "eagled-configuration"));
  reload.drain_timeout_s = static_cast<std::uint32_t>(wanted.drain_timeout_s);
  reload.take_over = [level = spdlog::level::from_str(wanted.log_level)] { spdlog::set_level(level); };
  return reload;
}

// `state`: what the keeper before this one left, where there was one.
StatusOr<int> keep_alive(ProgramOptions& options, UniqueFd& ready, std::vector<std::string> command,
                         UniqueFd state, const LogSinks& log) {
  KeeperOptions keeper;
  keeper.program = program_path();
  keeper.command = std::move(command);
  keeper.notifier.take_from_environment();
  EAGLE_ASSIGN_OR_RETURN(keeper.configuration, hand_over(options.config_text, "eagled-configuration"));
  if (log.recent) keeper.log.reset(::fcntl(log.recent->fd(), F_DUPFD_CLOEXEC, 0));
  if (!keeper.log.valid()) return Status(Reason::out_of_memory, "no memory for the newest log lines");
  keeper.reload = [&options] { return configuration_now(options); };
  EAGLE_ASSIGN_OR_RETURN(keeper.signals, block_signals());
  raise_descriptor_limit();
  Listening listening;
  if (state.valid()) {
    EAGLE_ASSIGN_OR_RETURN(keeper.inherited, take_left_state(std::move(state)));
    keeper.owner = std::move(keeper.inherited->owner);
    if (!keeper.inherited->program.empty()) keeper.program = keeper.inherited->program;
    EAGLE_ASSIGN_OR_RETURN(listening, go_on_listening(options, *keeper.inherited));
    spdlog::info("eagled {} takes the place of the keeper before it", EAGLE_VERSION);
  } else {
    EAGLE_ASSIGN_OR_RETURN(keeper.owner, inherited(options.owner_fd, "--owner-fd"));
    EAGLE_ASSIGN_OR_RETURN(listening, listen(options));
  }
  if (listening.unix_socket) {
    keeper.socket_device = listening.unix_socket->device();
    keeper.socket_inode = listening.unix_socket->inode();
  }
  keeper.listening = std::move(listening.sockets);
  keeper.ready = std::move(ready);
  keeper.ready_line = listening.ready_line;
  keeper.drain_timeout_s = static_cast<std::uint32_t>(options.drain_timeout_s);
  keeper.crash_window_s = static_cast<std::uint32_t>(options.crash_window_s);
  return keep(std::move(keeper));
}

// ---- a worker

// What the keeper says, for the thread that waits for orders to end.
struct Orders {
  UniqueFd said{::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)};
  std::atomic<std::uint32_t> drain_s = 0;
  std::atomic<bool> hand_over = false;
  std::mutex mutex;
  Daemon* daemon = nullptr;  // until it ends

  void take() const {
    eventfd_t one = 0;
    ::eventfd_read(said.get(), &one);
  }
};

// Nothing outlives its keeper: without it nobody would end this process, nor hold what it makes.
void obey(WorkerLink& link, Orders& orders, Configuration& configuration) {
  link.obey({[&](std::uint32_t seconds) {
               orders.drain_s = seconds;
               ::eventfd_write(orders.said.get(), 1);
             },
             [&](std::uint32_t seconds) {
               orders.drain_s = seconds;
               orders.hand_over = true;
               ::eventfd_write(orders.said.get(), 1);
             },
             [&] { ::eventfd_write(orders.said.get(), 1); },
             [&](std::uint64_t session) {
               const std::lock_guard lock(orders.mutex);
               if (orders.daemon != nullptr) orders.daemon->sessions().client_died(session);
             },
             [&](const UniqueFd& given) {
               const std::lock_guard lock(orders.mutex);
               if (orders.daemon == nullptr) return link.reloaded("not while it ends");
               const auto text = handed(given.get(), most_config_bytes);
               link.reloaded(text.ok() ? configuration.reload(*orders.daemon, *text)
                                       : text.status().message());
             }});
  spdlog::error("the keeper is gone; ending");
  std::_Exit(1);
}

Status work(ProgramOptions& options, WorkerLink& link, const LogSinks& log) {
  // Of a process group of its own; signals to this process are the keeper's to send.
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGPIPE}) ::signal(signal, SIG_IGN);
  raise_descriptor_limit();
  EAGLE_ASSIGN_OR_RETURN(options.loaded_tokens, tokens_of(options));
  EAGLE_ASSIGN_OR_RETURN(Inheritance inheritance, link.take_over());
  arm_faults(inheritance.state.epoch);
  EAGLE_ASSIGN_OR_RETURN(Ledger ledger, Ledger::open(std::move(inheritance.ledger)));
  // The link outlives the daemon.
  Serving::Survival survival{
      std::shared_ptr<StateLog>(&link, [](StateLog*) {}),
      std::move(inheritance.state),
      std::make_unique<Ledger>(std::move(ledger)),
      [&link](bool goes_round) { link.beat(goes_round); },
      [&link] { link.still_starts(); },
      [&link](const std::string& why, const std::vector<BlamedGraph>& blamed) { link.replace(why, blamed); }};
  const auto configuration = std::make_shared<Configuration>(options);
  Surroundings surroundings = surroundings_of(configuration, log);
  surroundings.end = [&link](std::optional<std::uint32_t> within_s) { link.end(within_s); };
  EAGLE_ASSIGN_OR_RETURN(Serving serving, Serving::start(options, std::move(inheritance.listening),
                                                         std::move(survival), std::move(surroundings)));
  link.serves();
  Orders orders;
  orders.daemon = &serving.daemon();
  std::thread([&link, &orders, configuration] { obey(link, orders, *configuration); }).detach();
  wait_for(orders.said.get(), -1, std::chrono::milliseconds(-1));
  orders.take();
  const EndOrders more{orders.said.get(), [&] {
                         orders.take();
                         return true;
                       }};
  if (orders.hand_over) {
    serving.hand_over(more, std::chrono::seconds(orders.drain_s));
    std::_Exit(0);  // with all that clients hold: it is the next worker's
  }
  {
    const std::lock_guard lock(orders.mutex);
    orders.daemon = nullptr;
  }
  serving.stop(more, std::chrono::seconds(orders.drain_s));
  std::_Exit(0);  // with the thread that obeys: it waits for the keeper
}

// What a keeper has given up, it has given up for its workers, too.
int run_worker(ProgramOptions& options, const LogSinks& log) {
  ::prctl(PR_SET_NAME, "eagled-worker");
  ::fcntl(worker_fd, F_SETFD, FD_CLOEXEC);
  ::fcntl(worker_log_fd, F_SETFD, FD_CLOEXEC);
  ::close(worker_config_fd);  // it was read
  WorkerLink link{UniqueFd(worker_fd)};
  const Status status = work(options, link, log);
  spdlog::error("{}", status.to_string());
  link.failed(status.message());
  return 1;
}

// ---- which of them

// What was asked for in place of serving.
StatusOr<std::string> answer(const ProgramOptions& options) {
  if (!options.new_token.empty()) {
    EAGLE_ASSIGN_OR_RETURN(const Tokens::Made made, Tokens::make(options.new_token));
    return "token, for the client (it is shown this once): " + made.token +
           "\nline, for the file that --tokens names: " + made.line + "\n";
  }
  EAGLE_RETURN_IF_ERROR(check(options, options.loaded_tokens));
  return options.print_config ? to_toml(options) : "the configuration is good\n";
}

// Whether this program could go on in another one's place; with these options, too.
Status check_state(ProgramOptions& options) {
  EAGLE_ASSIGN_OR_RETURN(options.loaded_tokens, tokens_of(options));
  EAGLE_RETURN_IF_ERROR(check(options, options.loaded_tokens));
  return check_left_state(first_descriptor, first_descriptor + 1, first_descriptor + 2);
}

// What the keeper before this one left, where there was one; the processes that we start do not learn of it.
UniqueFd state_of_another() {
  const char* const said = std::getenv(state_variable);
  if (said == nullptr) return {};
  UniqueFd state(std::atoi(said));
  ::unsetenv(state_variable);
  return state;
}

// `ended`: the exit status after an orderly end.
Status run(ProgramOptions& options, UniqueFd& ready, std::vector<std::string> command, UniqueFd state,
           const LogSinks& log, int& ended) {
  if (options.ask_health) {
    EAGLE_ASSIGN_OR_RETURN(const std::string said, health_of(options, options.health));
    ended = said == "SERVING" ? 0 : 1;
    std::puts(said.c_str());
    return {};
  }
  EAGLE_RETURN_IF_ERROR(confine());
  EAGLE_ASSIGN_OR_RETURN(options.loaded_tokens, tokens_of(options));
  if (options.check_config || options.print_config || !options.new_token.empty()) {
    EAGLE_ASSIGN_OR_RETURN(const std::string text, answer(options));
    std::fputs(text.c_str(), stdout);
    return std::fflush(stdout) == 0 ? Status() : failed("write");
  }
  if (!options.keeper) return serve_alone(options, ready, log);
  EAGLE_ASSIGN_OR_RETURN(ended, keep_alive(options, ready, std::move(command), std::move(state), log));
  return {};
}

// What lies free at the end of a thread's own heap the C library keeps up to a threshold, which grows with
// the blocks that were freed, to 64 MiB; giving back (heap.h) does not reach it, and there are as many such
// heaps as threads that parse messages.
void bound_free_memory() {
#if defined(__GLIBC__)
  ::mallopt(M_TRIM_THRESHOLD, 2 << 20);
  ::mallopt(M_MMAP_THRESHOLD, 4 << 20);  // which stands still from now on, too
#endif
}

}  // namespace
}  // namespace eagle::server

int main(int argc, char** argv) {
  using namespace eagle;
  server::ProgramOptions options;
  int exit_code = 0;
  if (!server::parse(argc, argv, options, exit_code)) return exit_code;
  // Workers are started with it; a process that is its own worker begins anew. Where it cannot, it only waits
  // less well.
  if (!options.worker && run::limit_spinning() && !options.keeper) ::execv("/proc/self/exe", argv);
  if (!options.worker) ::prctl(PR_SET_NAME, "eagled");
  server::bound_free_memory();
  const server::LogSinks log = server::start_log(options);
  if (options.worker) return server::run_worker(options, log);
  if (options.check_state) {
    const Status good = server::check_state(options);
    if (!good.ok()) spdlog::error("--check-state: {}", good.message());
    return good.ok() ? 0 : 1;
  }

  // Who takes another one's place has been ready for long.
  UniqueFd state = server::state_of_another();
  StatusOr<UniqueFd> ready = state.valid() ? UniqueFd() : server::inherited(options.ready_fd, "--ready-fd");
  Status status = ready.status();
  int ended = 0;
  if (status.ok()) status = server::run(options, *ready, {argv, argv + argc}, std::move(state), log, ended);
  if (status.ok()) return ended;
  spdlog::error("{}", status.to_string());
  if (ready.ok()) server::report(*ready, "error: " + status.message());
  return 1;
}
