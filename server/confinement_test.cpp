#include "server/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

// Newer than the headers that this is built with may be; the numbers are those of every 64-bit machine.
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

namespace eagle::server {
namespace {

// What `attempt` says, in a process of its own that is confined: empty, or what is wrong.
std::string confined(const std::function<std::string()>& attempt) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    const Status done = confine();
    const std::string said = done.ok() ? attempt() : done.to_string();
    if (::write(ends[1], said.data(), said.size()) < 0) ::_exit(2);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  char part[256];
  for (ssize_t count = 0; (count = ::read(ends[0], part, sizeof part)) > 0;)
    said.append(part, static_cast<std::size_t>(count));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? said : said + " (it died)";
}

std::string fails_with(int expected, const char* name, long result) {
  if (result < 0 && errno == expected) return {};
  return std::string(name) + (result < 0 ? ": " + std::to_string(errno) : " worked") + "; ";
}

// A child of a call that should not have made one ends at once.
long unless_child(long result) {
  if (result == 0) ::_exit(0);
  return result;
}

TEST(AConfinedProcess, CannotReachOtherProcesses) {
  EXPECT_EQ(confined([] {
              const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
              iovec nowhere{nullptr, 0};
              std::string said = fails_with(EPERM, "pidfd_getfd", ::syscall(SYS_pidfd_getfd, self, 0, 0));
              said += fails_with(EPERM, "process_madvise",
                                 ::syscall(SYS_process_madvise, self, &nowhere, 1, MADV_COLD, 0));
              said += fails_with(EPERM, "process_vm_readv",
                                 ::syscall(SYS_process_vm_readv, ::getpid(), &nowhere, 1, &nowhere, 1, 0));
              return said + fails_with(EPERM, "kcmp", ::syscall(SYS_kcmp, ::getpid(), ::getpid(), 0, 0, 0));
            }),
            "");
}

// Without the filter a user's own namespace is for everybody: EPERM is the filter's, and where namespaces are
// switched off, the kernel's.
TEST(AConfinedProcess, CannotMakeNamespaces) {
  EXPECT_EQ(confined([] {
              std::string said;
              for (const int flag : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC,
                                     CLONE_NEWUTS, CLONE_NEWCGROUP}) {
                const long made = ::syscall(SYS_clone, flag | SIGCHLD, 0, 0, 0, 0);
                said += fails_with(EPERM, "clone", unless_child(made));
              }
              clone_args arguments{};
              arguments.flags = CLONE_NEWUSER;
              arguments.exit_signal = SIGCHLD;
              const long made = ::syscall(SYS_clone3, &arguments, sizeof arguments);
              said += fails_with(ENOSYS, "clone3", unless_child(made));
              said += fails_with(EPERM, "unshare", ::unshare(CLONE_NEWUSER));
              return said + fails_with(EPERM, "setns", ::syscall(SYS_setns, 0, 0));
            }),
            "");
}

TEST(AConfinedProcess, CannotMountOrWatchFileSystems) {
  EXPECT_EQ(confined([] {
              std::string said =
                  fails_with(EPERM, "mount_setattr", ::syscall(SYS_mount_setattr, -1, "", 0, nullptr, 0));
              said += fails_with(EPERM, "fanotify_init", ::syscall(SYS_fanotify_init, 0, 0));
              said += fails_with(EPERM, "fanotify_mark", ::syscall(SYS_fanotify_mark, -1, 0, 0, -1, nullptr));
              return said + fails_with(EPERM, "mount", ::syscall(SYS_mount, "", "", "", 0, nullptr));
            }),
            "");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(AConfinedProcess, KeepsItsPersonality) {
  EXPECT_EQ(confined([] { return fails_with(EPERM, "personality", ::personality(0xffffffff)); }), "");
}
#endif

TEST(AConfinedProcess, StartsThreadsAndPrograms) {
  EXPECT_EQ(confined([]() -> std::string {
              int ran = 0;
              std::thread([&] { ran = 1; }).join();
              if (ran != 1) return "no thread ran";
              std::FILE* const program = ::popen("echo yes", "r");
              char line[8] = {};
              if (program == nullptr || std::fgets(line, sizeof line, program) == nullptr)
                return "no program ran";
              ::pclose(program);
              return std::string(line) == "yes\n" ? "" : line;
            }),
            "");
}

}  // namespace
}  // namespace eagle::server
