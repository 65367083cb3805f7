#include "server/keeper/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace eagle::server {
namespace {

class SpawnActions {
public:
  SpawnActions() {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnActions() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
};

}  // namespace

std::string Ending::text() const {
  if (exited) return "ended with status " + std::to_string(status);
  const char* const name = ::sigabbrev_np(status);
  return "was ended by signal " + std::to_string(status) +
         (name != nullptr ? " (SIG" + std::string(name) + ")" : "");
}

StatusOr<WorkerProcess> WorkerProcess::start(const std::string& program,
                                             const std::vector<std::string>& command,
                                             std::span<const int> descriptors) {
  SpawnActions actions;
  // Above all that they become, so that none takes another one's place.
  const int above = first_descriptor + static_cast<int>(descriptors.size());
  std::vector<UniqueFd> copies;
  int next = first_descriptor;
  for (const int fd : descriptors) {
    const UniqueFd& copy = copies.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, above));
    if (!copy.valid()) return Status(Reason::system, std::string("fcntl: ") + std::strerror(errno));
    ::posix_spawn_file_actions_adddup2(&actions.files, copy.get(), next++);
  }
  ::posix_spawn_file_actions_addclosefrom_np(&actions.files, above);
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&actions.attributes, &none);
  ::posix_spawnattr_setsigdefault(&actions.attributes, &all);
  ::posix_spawnattr_setflags(&actions.attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, program.c_str(), &actions.files, &actions.attributes, arguments.data(), environ);
  if (error != 0) return Status(Reason::system, "starting " + program + ": " + std::strerror(error));
  WorkerProcess worker(pid, UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))));
  if (!worker.process_.valid())
    return Status(Reason::system, std::string("pidfd_open: ") + std::strerror(errno));
  return worker;
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), process_(std::move(other.process_)) {}

WorkerProcess::~WorkerProcess() {
  if (pid_ == 0) return;
  kill();
  collect();
}

// With its group go the processes that it started.
void WorkerProcess::kill() const { ::kill(-pid_, SIGKILL); }

Ending WorkerProcess::collect() {
  ::kill(-pid_, SIGKILL);  // what is left of its group: while it is not collected, the number is its own
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0 && errno == EINTR) {
  }
  pid_ = 0;
  return {info.si_code == CLD_EXITED, info.si_status};
}

}  // namespace eagle::server
