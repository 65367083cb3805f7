#include "server/keeper/keeper.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "eagle/v1/state.pb.h"
#include "server/keeper/crash_loop.h"
#include "server/keeper/estate.h"
#include "server/keeper/exchange.h"
#include "server/keeper/packet.h"
#include "server/keeper/strikes.h"
#include "server/keeper/worker_process.h"
#include "server/ledger.h"
#include "server/principal.h"
#include "server/worker_descriptors.h"

namespace eagle::server {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

// A worker that says nothing for so long is taken for dead. It says something each second.
constexpr seconds longest_silence{10};
// The same until it serves. While it takes over it says that it lives with what it has taken over
// (WorkerLink::still_starts), so it may take its time for all of that; its own preparations are short.
constexpr seconds longest_start{60};
// Before a worker that could not be started is tried again.
constexpr seconds pause_after_failure{2};
// Above the worker's own last resort, after which it ends by itself.
constexpr seconds longest_end{15};

Status failed(const char* call) { return {Reason::system, std::string(call) + ": " + std::strerror(errno)}; }

class Keeper {
public:
  Keeper(KeeperOptions options, Estate estate, Ledger ledger)
      : options_(std::move(options)),
        estate_(std::move(estate)),
        ledger_(std::move(ledger)),
        crash_loop_(seconds(options_.crash_window_s)) {
    if (!options_.inherited) return;
    epoch_ = options_.inherited->epoch + 1;
    served_once_ = true;
    exchange_again_ = options_.inherited->again;
  }

  int run();

private:
  Status prepare();
  // What an event of the epoll is about; any other number is a session, whose process has ended. (Ids of
  // sessions are 64 random bits.)
  enum class Source : std::uint8_t { signals, owner, worker, socket, exchange, client };
  void watch(int fd, Source source, std::uint64_t session, std::uint32_t events);
  void unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

  Status start_worker();
  void handle(const epoll_event& event);
  void take_signal();
  void reload();
  void reloaded(const std::string& wrong);
  void drain(std::uint32_t seconds);
  [[nodiscard]] std::string state() const;  // for the service manager

  void replace_worker(const v1::ReplaceMessage& asked);

  void begin_exchange();
  void take_answer();
  void refuse_exchange(const Status& why);
  [[nodiscard]] LeftState left_state() const;
  void become_another();
  void client_ended(std::uint64_t session);

  void hear();
  void goes_round(bool now);
  void hear(const v1::WorkerMessage& message, std::vector<UniqueFd> descriptors);
  void hand_over_more();
  void tell(const v1::KeeperMessage& message, std::vector<int> descriptors = {});
  void send_what_waits();

  void worker_ended();
  void after_death(const Ending& ending, bool handed_over, bool served);
  void start_next_worker();
  bool blame_graphs();
  void give_up(const std::string& why);
  [[nodiscard]] Clock::time_point patience_ends() const;

  KeeperOptions options_;
  Estate estate_;
  Ledger ledger_;
  UniqueFd epoll_;
  // By session: the process has ended, and the worker of now has been told or will be.
  std::map<std::uint64_t, int> clients_;
  std::set<std::uint64_t> dead_clients_;

  struct Outgoing {
    std::string bytes;
    std::vector<int> descriptors;  // of the estate, the options, or `given_`
  };
  std::optional<WorkerProcess> worker_;
  UniqueFd socket_;
  std::deque<Outgoing> outgoing_;
  UniqueFd given_;  // the journal, to be read
  std::deque<Estate::Given> to_hand_over_;
  bool handed_over_ = false;
  bool serves_ = false;
  Clock::time_point heard_;
  Clock::time_point went_round_;  // its work
  std::string why_failed_;

  std::optional<KeeperOptions::Reload> candidate_;  // the worker has it and has not answered
  bool reload_waits_ = false;                       // for that, or for a worker

  std::uint32_t epoch_ = 0;
  bool served_once_ = false;
  bool draining_ = false;
  bool replacing_ = false;  // the worker hands over to the next one, as it asked for
  Clock::time_point drain_ends_;
  // Another program is to take this one's place: it is asked, or the worker drained for it.
  std::optional<Exchange> exchange_;
  bool handing_over_ = false;    // it has agreed
  bool exchange_again_ = false;  // somebody asked for it meanwhile
  CrashLoop crash_loop_;
  std::optional<Clock::time_point> start_again_;  // there is no worker until then
  std::optional<int> exit_status_;
};

Status Keeper::prepare() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return failed("epoll_create1");
  watch(options_.signals.get(), Source::signals, 0, EPOLLIN);
  if (options_.owner.valid()) watch(options_.owner.get(), Source::owner, 0, EPOLLIN);
  estate_.came = [this](std::uint64_t session, int process) {
    clients_[session] = process;
    dead_clients_.erase(session);
    watch(process, Source::client, session, EPOLLIN);
  };
  estate_.goes = [this](std::uint64_t session, int process) {
    clients_.erase(session);
    dead_clients_.erase(session);
    unwatch(process);
  };
  estate_.announce();
  return start_worker();
}

void Keeper::watch(int fd, Source source, std::uint64_t session, std::uint32_t events) {
  epoll_event event{events, {}};
  event.data.u64 = source == Source::client ? session : static_cast<std::uint64_t>(source);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno == EEXIST) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }
}

Status Keeper::start_worker() {
  EAGLE_ASSIGN_OR_RETURN(given_, estate_.journal().reader());
  EAGLE_ASSIGN_OR_RETURN(auto ends, packet_sockets());
  socket_ = std::move(ends.first);
  std::vector<std::string> command = options_.command;
  command.emplace_back("--worker");
  EAGLE_ASSIGN_OR_RETURN(
      WorkerProcess worker,
      WorkerProcess::start("/proc/self/exe", command,
                           std::array{ends.second.get(), options_.configuration.get(), options_.log.get()}));
  worker_.emplace(std::move(worker));
  watch(worker_->process(), Source::worker, 0, EPOLLIN);
  watch(socket_.get(), Source::socket, 0, EPOLLIN);
  went_round_ = heard_ = Clock::now();
  serves_ = false;
  handed_over_ = false;
  replacing_ = false;
  outgoing_.clear();
  why_failed_.clear();

  v1::KeeperMessage begin;
  begin.mutable_begin()->set_epoch(epoch_);
  std::vector<int> descriptors = {given_.get(), ledger_.fd()};
  for (const auto& [endpoint, socket] : options_.listening) {
    begin.mutable_begin()->add_listen(endpoint);
    descriptors.push_back(socket.get());
  }
  tell(begin, descriptors);
  const std::vector<Estate::Given> given = estate_.for_the_worker();
  to_hand_over_.assign(given.begin(), given.end());
  hand_over_more();
  return {};
}

// A packet of planes at a time, the next one when that has been taken: the kernel bounds the descriptors that
// are on their way.
void Keeper::hand_over_more() {
  if (handed_over_) return;
  v1::KeeperMessage message;
  v1::PlanesMessage& planes = *message.mutable_planes();
  std::vector<int> descriptors;
  while (!to_hand_over_.empty() && descriptors.size() < packet_descriptors) {
    const Estate::Given given = to_hand_over_.front();
    to_hand_over_.pop_front();
    v1::PlanesMessage::Place& place = *planes.add_planes();
    descriptors.push_back(estate_.descriptor(given));
    place.set_bytes_id(given.bytes_id);
    if (given.bytes_id != 0) continue;
    place.set_session(given.key.session);
    place.set_id(given.key.id);
    place.set_kind(static_cast<std::uint32_t>(given.key.kind));
  }
  handed_over_ = to_hand_over_.empty();
  planes.set_last(handed_over_);
  tell(message, descriptors);
  if (!handed_over_) return;
  given_.reset();
  for (const std::uint64_t session : dead_clients_) {
    v1::KeeperMessage died;
    died.set_client_died(session);
    tell(died);
  }
}

void Keeper::tell(const v1::KeeperMessage& message, std::vector<int> descriptors) {
  outgoing_.push_back({message.SerializeAsString(), std::move(descriptors)});
  send_what_waits();
}

// The descriptors of what waits stay open: nothing changes before the hand-over is done.
void Keeper::send_what_waits() {
  while (!outgoing_.empty()) {
    const Outgoing& next = outgoing_.front();
    const auto sent = send_packet(socket_.get(), next.bytes, next.descriptors, Wait::no);
    if (!sent.ok()) {  // its end is noticed in its own time
      outgoing_.clear();
      break;
    }
    if (!*sent) break;
    outgoing_.pop_front();
  }
  epoll_event event{EPOLLIN | (outgoing_.empty() ? 0u : static_cast<std::uint32_t>(EPOLLOUT)), {}};
  event.data.u64 = static_cast<std::uint64_t>(Source::socket);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket_.get(), &event);
}

int Keeper::run() {
  if (const Status prepared = prepare(); !prepared.ok()) give_up(prepared.message());
  while (!exit_status_) {
    Clock::time_point next = patience_ends();
    if (exchange_ && !handing_over_) next = std::min(next, exchange_->patience_ends());
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
    std::array<epoll_event, 64> events{};
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                   static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000)));
    for (int i = 0; i < count && !exit_status_; ++i) handle(events[static_cast<std::size_t>(i)]);
    if (exchange_ && !handing_over_ && Clock::now() >= exchange_->patience_ends()) exchange_->give_up();
    // Only once nothing of it waits to be heard: this process may have been stopped itself.
    if (start_again_ && Clock::now() >= *start_again_) start_next_worker();
    if (count == 0 && worker_ && Clock::now() >= patience_ends()) {
      spdlog::error("worker {} says nothing any more; killing it", worker_->pid());
      worker_->kill();
      heard_ = Clock::now();
    }
  }
  return *exit_status_;
}

Clock::time_point Keeper::patience_ends() const {
  if (start_again_) return *start_again_;
  if (draining_ || handing_over_ || replacing_) return std::max(drain_ends_, heard_ + seconds(1));
  return heard_ + (serves_ ? longest_silence : longest_start);
}

void Keeper::handle(const epoll_event& event) {
  switch (event.data.u64) {
    case static_cast<std::uint64_t>(Source::signals):
      return take_signal();
    case static_cast<std::uint64_t>(Source::owner):
      unwatch(options_.owner.get());
      return drain(0);
    case static_cast<std::uint64_t>(Source::worker):
      return worker_ended();
    case static_cast<std::uint64_t>(Source::exchange):
      return take_answer();
    case static_cast<std::uint64_t>(Source::socket):
      if ((event.events & EPOLLOUT) != 0) send_what_waits();
      if ((event.events & ~EPOLLOUT) != 0) hear();
      return;
    default:
      return client_ended(event.data.u64);
  }
}

void Keeper::take_signal() {
  signalfd_siginfo info{};
  if (::read(options_.signals.get(), &info, sizeof info) != sizeof info) return;
  spdlog::info("signal {} from pid {}", info.ssi_signo, info.ssi_pid);
  if (info.ssi_signo == SIGUSR2) return begin_exchange();
  info.ssi_signo == SIGHUP ? reload() : drain(options_.drain_timeout_s);
}

void Keeper::reload() {
  if (draining_) return;
  reload_waits_ = !serves_ || candidate_.has_value();
  if (reload_waits_) return;
  options_.notifier.reloading();
  auto wanted = options_.reload();
  if (!wanted.ok()) {
    spdlog::error("reload: the configuration stays as it was: {}", wanted.status().message());
    return reloaded(wanted.status().message());
  }
  candidate_ = std::move(*wanted);
  v1::KeeperMessage message;
  message.set_reload(true);
  tell(message, {candidate_->configuration.get()});
}

// A configuration is taken over by both processes or by none.
void Keeper::reloaded(const std::string& wrong) {
  if (auto taken = std::exchange(candidate_, std::nullopt); taken && wrong.empty()) {
    options_.configuration = std::move(taken->configuration);
    options_.drain_timeout_s = taken->drain_timeout_s;
    taken->take_over();
  }
  if (draining_) return;
  options_.notifier.ready(wrong.empty() ? state() : "reload: " + wrong);
  if (reload_waits_) reload();
}

std::string Keeper::state() const {
  return "serving, worker " + std::to_string(epoch_ + 1) + " has pid " +
         std::to_string(worker_ ? worker_->pid() : 0);
}

// Something of the worker's process is spoilt that only another process has not. What it lays that to is
// struck as for a death: else one graph could have workers replaced for ever.
void Keeper::replace_worker(const v1::ReplaceMessage& asked) {
  const std::int64_t now = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
  for (const v1::StrikeRecord& blamed : asked.blamed()) {
    GraphHash hash{};
    if (blamed.hash().size() != hash.size()) continue;
    std::copy(blamed.hash().begin(), blamed.hash().end(), hash.begin());
    const auto deaths = strike(estate_, hash, now, blamed.tenant(), blamed.graph());
    if (!deaths.ok()) spdlog::error("{}", deaths.status().to_string());
  }
  if (draining_ || handing_over_ || replacing_ || !serves_) return;
  spdlog::error("worker {} is to be replaced: {}", worker_->pid(), asked.why());
  options_.notifier.status("replacing the worker: " + asked.why());
  replacing_ = true;
  drain_ends_ = Clock::now() + seconds(options_.drain_timeout_s) + longest_end;
  v1::KeeperMessage message;
  message.set_hand_over(options_.drain_timeout_s);
  tell(message);
}

// ---- another program takes this one's place

// The worker is there and serves from the question to the end of its drain.
void Keeper::begin_exchange() {
  if (draining_) return;
  if (exchange_ || !serves_) {
    exchange_again_ = true;
    spdlog::info("an exchange is to follow the one that is under way, or the start of the worker");
    return;
  }
  auto begun = Exchange::begin(options_.program, options_.command, left_state());
  if (!begun.ok()) return refuse_exchange(begun.status());
  exchange_.emplace(*std::move(begun));
  watch(exchange_->answer(), Source::exchange, 0, EPOLLIN);
}

void Keeper::refuse_exchange(const Status& why) {
  exchange_.reset();
  spdlog::error("no other program takes over: {}; this one serves on", why.message());
  // Whoever asked meanwhile may have mended what was wrong.
  if (serves_ && std::exchange(exchange_again_, false)) begin_exchange();
}

void Keeper::take_answer() {
  unwatch(exchange_->answer());
  const Status answer = exchange_->take_answer();
  if (draining_) return exchange_.reset();
  if (!answer.ok()) return refuse_exchange(answer);
  spdlog::info("'{}' takes over once the worker has handed over", options_.program);
  options_.notifier.status("another program takes over");
  handing_over_ = true;
  drain_ends_ = Clock::now() + seconds(options_.drain_timeout_s) + longest_end;
  if (!worker_) {  // nor could one be started
    become_another();
    return;
  }
  if (!handed_over_) return worker_->kill();  // the one that served has died, and this one serves nobody yet
  v1::KeeperMessage message;
  message.set_hand_over(options_.drain_timeout_s);
  tell(message);
}

LeftState Keeper::left_state() const {
  LeftState left;
  left.epoch = epoch_;
  for (const auto& [endpoint, socket] : options_.listening)
    left.listening.emplace_back(endpoint, socket.get());
  left.socket_device = options_.socket_device;
  left.socket_inode = options_.socket_inode;
  left.owner = options_.owner.get();
  left.journal = estate_.journal().fd();
  left.ledger = ledger_.fd();
  for (const auto& [key, fd] : estate_.descriptors()) left.held[key] = fd.get();
  left.bytes = estate_.bytes();
  left.program = options_.program;
  left.again = exchange_again_;
  return left;
}

// Where it cannot be, this one goes on with another worker.
void Keeper::become_another() {
  options_.notifier.leave_to_environment();
  const Status failed = exchange_->become(left_state());
  options_.notifier.take_from_environment();
  handing_over_ = false;
  refuse_exchange(failed);
  exchange_again_ = exchange_again_ || failed.reason() == Reason::bad_value;
}

// ---- the end

// Once: running work gets its time. Again: it gets none.
void Keeper::drain(std::uint32_t time_s) {
  v1::KeeperMessage message;
  if (draining_) {
    message.set_hurry(true);
    drain_ends_ = Clock::now() + longest_end;
  } else {
    message.set_drain(time_s);
    drain_ends_ = Clock::now() + seconds(time_s) + longest_end;
  }
  options_.notifier.stopping(std::exchange(draining_, true) ? "ending now" : "draining",
                             drain_ends_ - Clock::now());
  if (handed_over_) return tell(message);
  if (!worker_) {  // nor can one be started
    exit_status_ = 0;
    return;
  }
  worker_->kill();  // it serves nobody yet
}

void Keeper::client_ended(std::uint64_t session) {
  const auto client = clients_.find(session);
  // The event may be that of a process that had the session before: it was resumed in the meantime.
  if (client == clients_.end() || runs(client->second)) return;
  if (!dead_clients_.insert(session).second) return;
  unwatch(client->second);
  if (!handed_over_) return;  // then it is told
  v1::KeeperMessage message;
  message.set_client_died(session);
  tell(message);
}

// Everything that has come.
void Keeper::hear() {
  if (!worker_) return;  // an event that came together with its end
  for (;;) {
    auto packet = receive_packet(socket_.get(), Wait::no);
    if (!packet.ok()) {
      if (packet.status().reason() != Reason::connection_lost) spdlog::error("{}", packet.status().message());
      unwatch(socket_.get());
      return worker_->kill();  // most likely it is dead; it has nobody to talk to in any case
    }
    if (!*packet) return;
    heard_ = Clock::now();
    v1::WorkerMessage message;
    if (!message.ParseFromString((*packet)->bytes)) {
      spdlog::error("worker {} does not talk like one; killing it", worker_->pid());
      return worker_->kill();
    }
    hear(message, std::move((*packet)->descriptors));
  }
}

// The service manager would end both of us, and with that the memory of everybody: a worker whose work has
// stood still for half of its patience is replaced before.
void Keeper::goes_round(bool now) {
  if (now) {
    went_round_ = heard_;
    return options_.notifier.goes_round();
  }
  const auto patience = options_.notifier.watchdog() / 2;
  if (patience.count() == 0 || heard_ - went_round_ < patience) return;
  spdlog::error("worker {} has been at one piece of work for {} s; killing it", worker_->pid(),
                std::chrono::duration_cast<seconds>(heard_ - went_round_).count());
  worker_->kill();
  went_round_ = heard_;
}

void Keeper::hear(const v1::WorkerMessage& message, std::vector<UniqueFd> descriptors) {
  if (message.has_change()) {
    const Status taken = estate_.take(message.change(), std::move(descriptors));
    if (taken.ok()) return;
    spdlog::error("the worker's journal: {}", taken.to_string());
    worker_->kill();
  } else if (message.has_failed()) {
    why_failed_ = message.failed();
  } else if (message.has_adopted()) {
    hand_over_more();
  } else if (message.has_beat()) {
    goes_round(message.goes_round());
    if (draining_) options_.notifier.still_stopping(drain_ends_ - Clock::now());
  } else if (message.has_end()) {
    drain(message.has_end_within_s() ? message.end_within_s() : options_.drain_timeout_s);
  } else if (message.has_reloaded()) {
    reloaded(message.reloaded());
  } else if (message.has_replace()) {
    replace_worker(message.replace());
  } else if (message.has_serves()) {
    serves_ = true;
    crash_loop_.served();
    options_.notifier.ready(state());
    if (!std::exchange(served_once_, true)) report(options_.ready, options_.ready_line);
    if (std::exchange(exchange_again_, false)) begin_exchange();
    if (reload_waits_) reload();
  }
}

void Keeper::worker_ended() {
  hear();  // what it had said before
  estate_.drop_unfinished();
  unwatch(worker_->process());
  const Ending ending = worker_->collect();
  worker_.reset();
  const bool served = std::exchange(serves_, false);
  unwatch(socket_.get());
  socket_.reset();
  outgoing_.clear();
  if (candidate_) {
    spdlog::error("reload: the configuration stays as it was: the worker ended meanwhile");
    candidate_.reset();
  }
  after_death(ending, std::exchange(handed_over_, false), served);
}

void Keeper::after_death(const Ending& ending, bool handed_over, bool served) {
  if (draining_) {
    const bool orderly = !handed_over || (ending.exited && ending.status == 0);
    if (!orderly) spdlog::error("the worker {} while it was to end", ending.text());
    exit_status_ = orderly ? 0 : 1;
    return;
  }
  if (handing_over_) {
    if (!ending.exited || ending.status != 0)
      spdlog::error("the worker {} while it handed over", ending.text());
    become_another();
    ++epoch_;
    return start_next_worker();
  }
  if (std::exchange(replacing_, false) && ending.exited && ending.status == 0) {
    spdlog::info("the worker has handed over; starting another");
    ++epoch_;
    return start_next_worker();
  }
  if (!served_once_) {
    return give_up(why_failed_.empty() ? "the worker " + ending.text() + " before it served" : why_failed_);
  }
  const bool of_a_graph = blame_graphs();
  options_.notifier.status("the worker " + ending.text() + "; starting another");
  spdlog::error("the worker {}{}{}; starting another", ending.text(), why_failed_.empty() ? "" : ": ",
                why_failed_);
  using Death = CrashLoop::Death;
  const Death death = of_a_graph ? Death::of_a_graph : served ? Death::while_serving : Death::before_serving;
  if (const std::string why = crash_loop_.died(death, Clock::now()); !why.empty()) return give_up(why);
  ++epoch_;
  start_next_worker();
}

// What a system that is out of processes, memory or descriptors cannot do now it may do soon; such a moment
// is a likely one for a death.
void Keeper::start_next_worker() {
  start_again_.reset();
  const Status started = start_worker();
  if (started.ok()) return;
  const std::string why = crash_loop_.died(CrashLoop::Death::before_serving, Clock::now());
  if (!why.empty()) return give_up(started.message() + "; " + why);
  spdlog::error("{}; trying again", started.message());
  start_again_ = Clock::now() + pause_after_failure;
}

// A graph that was running is what a death is laid to, for the time being. Whether there was one.
bool Keeper::blame_graphs() {
  const std::vector<GraphHash> running = ledger_.take_running();
  for (const GraphHash& hash : running) {
    const auto deaths =
        strike(estate_, hash, std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
    if (!deaths.ok()) spdlog::error("{}", deaths.status().to_string());
    spdlog::error(
        "graph {} was running{}", text_of(hash),
        deaths.ok() && *deaths >= deaths_to_quarantine ? ", again: it is not launched any more" : "");
  }
  return !running.empty();
}

void Keeper::give_up(const std::string& why) {
  spdlog::error("{}", why);
  report(options_.ready, "error: " + why);
  exit_status_ = 1;
}

}  // namespace

int keep(KeeperOptions options) {
  auto& left = options.inherited;
  auto estate = left ? Estate::adopt(std::move(left->journal), std::move(left->held), std::move(left->bytes))
                     : Estate::create();
  auto ledger = left ? Ledger::adopt(std::move(left->ledger)) : Ledger::create();
  const Status made = estate.ok() ? ledger.status() : estate.status();
  if (!made.ok()) {
    spdlog::error("{}", made.to_string());
    report(options.ready, "error: " + made.message());
    return 1;
  }
  return Keeper(std::move(options), *std::move(estate), *std::move(ledger)).run();
}

void report(UniqueFd& fd, std::string line) {
  if (!fd.valid()) return;
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  if (::write(fd.get(), line.data(), line.size()) < 0) spdlog::warn("--ready-fd: {}", std::strerror(errno));
  fd.reset();
}

}  // namespace eagle::server
