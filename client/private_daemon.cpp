#include "client/private_daemon.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>
#include <vector>

namespace eagle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view directory_prefix = "eagled-private-";
constexpr std::string_view socket_name = "eagled.sock";
constexpr std::string_view lock_name = "client.lock";
// Where the child finds what it inherits.
constexpr int owner_fd = 3;
constexpr int ready_fd = 4;
// What a daemon without sessions gets for going away by itself.
constexpr std::chrono::seconds end_patience{5};

Status system_error(const std::string& call) {
  return {Reason::system, "starting a private eagled: " + call + ": " + std::strerror(errno)};
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

// Directories of the shared object and of the program that this code is in.
std::vector<std::filesystem::path> homes() {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_eagled), &info) != 0 && info.dli_fname != nullptr) {
    found.push_back(std::filesystem::canonical(info.dli_fname, error).parent_path());
  }
  found.push_back(std::filesystem::read_symlink("/proc/self/exe", error).parent_path());
  return found;
}

int pidfd_of(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

int remaining_ms(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(std::min<std::int64_t>(left, 1'000'000));
}

// What the daemon said about its start: one line, cut short where it went away.
struct Said {
  std::string line;
  bool in_time = true;
};
Said read_line(int fd, Clock::time_point deadline) {
  Said said;
  pollfd poll{fd, POLLIN, 0};
  while (said.line.size() < 4096) {
    const int ready = ::poll(&poll, 1, remaining_ms(deadline));
    if (ready < 0 && errno == EINTR) continue;
    char byte = 0;
    said.in_time = ready > 0;
    if (ready <= 0 || ::read(fd, &byte, 1) != 1 || byte == '\n') break;
    said.line.push_back(byte);
  }
  return said;
}

void remove_directory(const std::string& path) {
  ::unlink((path + "/" + std::string(socket_name)).c_str());
  ::unlink((path + "/" + std::string(lock_name)).c_str());
  ::rmdir(path.c_str());
}

// Removes the directories of clients that were killed before they could. Whoever uses one holds its lock.
void sweep(const std::string& parent) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(parent.c_str()), &::closedir);
  if (!listing) return;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (!std::string_view(entry->d_name).starts_with(directory_prefix)) continue;
    const std::string path = parent + "/" + entry->d_name;
    const UniqueFd lock(
        ::open((path + "/" + std::string(lock_name)).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!lock.valid() || ::fstat(lock.get(), &status) != 0 || status.st_uid != ::geteuid()) continue;
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) remove_directory(path);
  }
}

// What the sessions of one process share. A forked child finds its parent's pid here and makes its own; the
// mutex of the old one may have been held by a thread that the child does not have.
struct SharedDaemon {
  pid_t process = -1;
  std::timed_mutex mutex;
  std::weak_ptr<PrivateDaemon> daemon;
};

SharedDaemon& shared_daemon() {
  static std::atomic<SharedDaemon*> current = nullptr;
  SharedDaemon* seen = current.load();
  while (seen == nullptr || seen->process != ::getpid()) {
    auto fresh = std::make_unique<SharedDaemon>();
    fresh->process = ::getpid();
    if (current.compare_exchange_strong(seen, fresh.get())) seen = fresh.release();
  }
  return *seen;
}

class SpawnActions {
public:
  SpawnActions() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~SpawnActions() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  posix_spawn_file_actions_t* actions() { return &actions_; }
  posix_spawnattr_t* attributes() { return &attributes_; }

private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

StatusOr<std::string> find_eagled() {
  const std::string named = environment("EAGLED");
  if (!named.empty()) {
    if (is_program(named)) return std::filesystem::absolute(named).string();
    return Status(Reason::no_daemon, "EAGLED is '" + named + "', and that is no program");
  }
  std::vector<std::filesystem::path> places;
  for (const std::filesystem::path& home : homes()) {
    if (home.empty()) continue;
    places.push_back(home / "eagled");
    places.push_back(home / "bin" / "eagled");  // of a Python wheel
    // Of an installation: `home` is PREFIX/bin, PREFIX/lib or PREFIX/lib/python3/dist-packages/eagle.
    std::filesystem::path prefix = home;
    for (int up = 0; up < 4 && prefix.has_relative_path(); ++up) {
      prefix = prefix.parent_path();
      places.push_back(prefix / "bin" / "eagled");
    }
  }
  const std::string path = environment("PATH");
  for (std::size_t start = 0; start < path.size();) {
    const std::size_t end = std::min(path.find(':', start), path.size());
    if (end > start) places.push_back(std::filesystem::path(path.substr(start, end - start)) / "eagled");
    start = end + 1;
  }
  std::string looked;
  for (const std::filesystem::path& place : places) {
    if (is_program(place)) return std::filesystem::absolute(place).string();
    looked += (looked.empty() ? "" : ", ") + place.string();
  }
  return Status(Reason::no_daemon, "no daemon is running, and no eagled was found to start one (looked at " +
                                       looked + "); install it, or set EAGLED to its path");
}

StatusOr<std::shared_ptr<PrivateDaemon>> PrivateDaemon::of_process(Clock::time_point deadline) {
  SharedDaemon& shared = shared_daemon();
  const std::unique_lock lock(shared.mutex, deadline);
  if (!lock.owns_lock()) {
    return Status(Reason::no_daemon,
                  "another thread is starting a private eagled, and it was not ready in time; "
                  "give connect() a longer timeout");
  }
  if (auto daemon = shared.daemon.lock(); daemon && daemon->running()) return daemon;
  EAGLE_ASSIGN_OR_RETURN(auto daemon, start(deadline));
  shared.daemon = daemon;
  return daemon;
}

bool PrivateDaemon::ends_before(Clock::time_point deadline) const {
  using std::chrono::milliseconds;
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
  return left.count() > 0 && wait_for_end(left);
}

StatusOr<std::shared_ptr<PrivateDaemon>> PrivateDaemon::start(Clock::time_point deadline) {
  EAGLE_ASSIGN_OR_RETURN(const std::string program, find_eagled());
  const std::shared_ptr<PrivateDaemon> daemon(new PrivateDaemon);
  daemon->owner_ = ::getpid();
  EAGLE_RETURN_IF_ERROR(daemon->make_directory());

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe2");
  const UniqueFd report(ends[0]);
  EAGLE_RETURN_IF_ERROR(daemon->spawn(program, UniqueFd(ends[1])));

  const Said said = read_line(report.get(), deadline);
  if (said.line == "ready") return daemon;
  const std::string subject = "a private eagled (" + program + ") ";
  constexpr std::string_view error = "error: ";
  if (said.line.starts_with(error)) {
    return Status(Reason::no_daemon, subject + "did not start: " + said.line.substr(error.size()));
  }
  return Status(Reason::no_daemon,
                subject + (said.in_time ? "ended before it was ready; run it by hand to see why"
                                        : "was not ready in time; give connect() a longer timeout"));
}

Status PrivateDaemon::make_directory() {
  const std::string runtime = environment("XDG_RUNTIME_DIR");
  for (const std::string& parent : {runtime, std::string("/tmp")}) {
    if (parent.empty()) continue;
    sweep(parent);
    if (make_directory_in(parent)) return {};
  }
  return system_error("making a directory for its socket in XDG_RUNTIME_DIR or /tmp");
}

bool PrivateDaemon::make_directory_in(const std::string& parent) {
  const std::string pattern = parent + "/" + std::string(directory_prefix) + "XXXXXX";
  if (pattern.size() + 1 + socket_name.size() > max_socket_path_bytes) return false;
  while (true) {
    std::string path = pattern;
    if (::mkdtemp(path.data()) == nullptr) return false;  // mode 0700
    const std::string lock_path = path + "/" + std::string(lock_name);
    UniqueFd lock(::open(lock_path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
    struct stat status {};
    if (!lock.valid() || ::flock(lock.get(), LOCK_EX) != 0 || ::fstat(lock.get(), &status) != 0) {
      remove_directory(path);
      return false;
    }
    if (status.st_nlink == 0) continue;  // another client's sweep was quicker than our lock
    directory_ = std::move(path);
    lock_ = std::move(lock);
    return true;
  }
}

Status PrivateDaemon::spawn(const std::string& program, UniqueFd ready) {
  // Out of the way of the numbers that the child is to find them at.
  constexpr int high = 10;
  const UniqueFd self(pidfd_of(::getpid()));
  if (!self.valid()) return system_error("pidfd_open");
  const UniqueFd owner(::fcntl(self.get(), F_DUPFD_CLOEXEC, high));
  const UniqueFd report(::fcntl(ready.get(), F_DUPFD_CLOEXEC, high));
  if (!owner.valid() || !report.valid()) return system_error("fcntl(F_DUPFD_CLOEXEC)");

  SpawnActions spawn;
  ::posix_spawn_file_actions_addopen(spawn.actions(), 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(spawn.actions(), 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(spawn.actions(), owner.get(), owner_fd);
  ::posix_spawn_file_actions_adddup2(spawn.actions(), report.get(), ready_fd);
  ::posix_spawn_file_actions_addclosefrom_np(spawn.actions(), ready_fd + 1);
  ::posix_spawn_file_actions_addchdir_np(spawn.actions(), "/");
  // Its own process group: Ctrl-C at the terminal is for this program.
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(spawn.attributes(), &none);
  ::posix_spawnattr_setsigdefault(spawn.attributes(), &all);
  ::posix_spawnattr_setflags(spawn.attributes(),
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> words = {program,           "--listen",
                                    endpoint().text(), "--no-keeper",
                                    "--owner-fd",      std::to_string(owner_fd),
                                    "--ready-fd",      std::to_string(ready_fd)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error =
      ::posix_spawn(&pid_, program.c_str(), spawn.actions(), spawn.attributes(), arguments.data(), environ);
  if (error != 0) {
    errno = error;
    return system_error(program);
  }
  process_.reset(pidfd_of(pid_));
  return process_.valid() ? Status() : system_error("pidfd_open");
}

bool PrivateDaemon::wait_for_end(std::chrono::milliseconds limit) const {
  const Clock::time_point deadline = Clock::now() + limit;
  pollfd poll{process_.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&poll, 1, remaining_ms(deadline));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

bool PrivateDaemon::running() const { return !wait_for_end(std::chrono::milliseconds(0)); }

void PrivateDaemon::end() {
  const auto send = [this](int signal) {
    ::syscall(SYS_pidfd_send_signal, process_.get(), signal, nullptr, 0);
  };
  send(SIGTERM);
  if (!wait_for_end(end_patience)) send(SIGKILL);
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(process_.get()), &info, WEXITED);
}

PrivateDaemon::~PrivateDaemon() {
  if (::getpid() != owner_) return;
  if (process_.valid()) end();
  if (!directory_.empty()) remove_directory(directory_);
}

}  // namespace eagle
