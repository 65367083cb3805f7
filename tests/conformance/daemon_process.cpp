#include "tests/conformance/daemon_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "engine/base/unique_fd.h"

namespace eagle::conformance {
namespace {

// Reached only by a failure.
constexpr int patience_ms = 60'000;

// The line that the daemon writes when it knows whether it serves.
std::string read_line(int fd) {
  std::string line;
  pollfd poll{fd, POLLIN, 0};
  char byte = 0;
  while (::poll(&poll, 1, patience_ms) > 0 && ::read(fd, &byte, 1) == 1 && byte != '\n') line.push_back(byte);
  return line;
}

}  // namespace

StatusOr<std::unique_ptr<DaemonProcess>> DaemonProcess::start(int threads,
                                                              const std::vector<std::string>& more,
                                                              std::uint64_t descriptors, bool copied) {
  const char* program = std::getenv("EAGLED");
  if (program == nullptr) {
    return Status(Reason::no_daemon, "EAGLED is not set: no eagled to test with (ctest sets it)");
  }
  std::unique_ptr<DaemonProcess> daemon(new DaemonProcess);
  char pattern[] = "/tmp/eagle-conformance-XXXXXX";
  if (::mkdtemp(pattern) == nullptr) return Status(Reason::internal, "mkdtemp failed");
  daemon->folder_ = pattern;

  const std::string copy = daemon->program();
  if (copied) {
    std::filesystem::copy_file(program, copy);
    program = copy.c_str();
  }

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status(Reason::internal, "pipe2 failed");
  const UniqueFd reader(ends[0]);
  UniqueFd writer(::fcntl(ends[1], F_DUPFD_CLOEXEC, 10));
  ::close(ends[1]);
  // A test that aborts leaves no daemon behind.
  const UniqueFd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  const UniqueFd owner(::fcntl(self.get(), F_DUPFD_CLOEXEC, 10));
  constexpr int ready_fd = 3;
  constexpr int owner_fd = 4;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, writer.get(), ready_fd);
  ::posix_spawn_file_actions_adddup2(&actions, owner.get(), owner_fd);
  std::vector<std::string> words = {program,
                                    "--listen",
                                    daemon->endpoint(),
                                    "--listen",
                                    "dns:127.0.0.1:0",
                                    "--ready-fd",
                                    std::to_string(ready_fd),
                                    "--owner-fd",
                                    std::to_string(owner_fd),
                                    "--threads",
                                    std::to_string(threads)};
  words.insert(words.end(), more.begin(), more.end());
  if (descriptors != 0) {
    words.insert(words.begin(), {"prlimit", "--nofile=" + std::to_string(descriptors)});
    program = "/usr/bin/prlimit";
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error = ::posix_spawn(&daemon->pid_, program, &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  writer.reset();
  if (error != 0) {
    daemon->pid_ = -1;
    return Status(Reason::internal, std::string("cannot start ") + program);
  }
  const std::string line = read_line(reader.get());
  constexpr std::string_view ready = "ready ";  // and where it listens for TCP
  if (line.starts_with(ready)) {
    daemon->tcp_endpoint_ = line.substr(ready.size());
    return daemon;
  }
  return Status(Reason::internal, std::string(program) + " does not serve: '" + line + "'");
}

DaemonProcess::~DaemonProcess() {
  terminate();
  std::filesystem::remove_all(folder_);
}

pid_t DaemonProcess::worker() const {
  const std::string process = std::to_string(pid_);
  pid_t worker = -1;
  std::ifstream("/proc/" + process + "/task/" + process + "/children") >> worker;
  return worker;
}

void DaemonProcess::kill() { end(SIGKILL); }
int DaemonProcess::terminate() { return end(SIGTERM); }

int DaemonProcess::wait() { return end(0); }

int DaemonProcess::end(int signal) {
  if (pid_ < 0) return -1;
  ::kill(pid_, signal);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace eagle::conformance
