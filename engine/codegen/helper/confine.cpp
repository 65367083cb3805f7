#include "engine/codegen/helper/confine.h"

#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace eagle::codegen {
namespace {

constexpr rlim_t address_space = rlim_t{8} << 30;
constexpr rlim_t file_size = rlim_t{1} << 30;
// In seconds, of one request: as much as the longest time limit that eagled takes.
constexpr rlim_t processor_time = 3600;

void limit(__rlimit_resource resource, rlim_t value) {
  rlimit current{};
  if (::getrlimit(resource, &current) != 0) return;
  const rlim_t bounded = std::min(value, current.rlim_max);
  const rlimit wanted{bounded, bounded};
  ::setrlimit(resource, &wanted);
}

// Sanitizers keep shadow memory larger than any limit and make calls of their own.
#ifdef EAGLE_SANITIZED
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

Status filter_calls() {
  constexpr int allowed[] = {
      // the socket and the images
      SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(poll), SCMP_SYS(ppoll),
      SCMP_SYS(close), SCMP_SYS(fcntl), SCMP_SYS(fchmod), SCMP_SYS(fstat), SCMP_SYS(newfstatat),
      SCMP_SYS(lseek), SCMP_SYS(memfd_create),
      // memory
      SCMP_SYS(brk), SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect),
      SCMP_SYS(madvise),
      // threads' and signals' housekeeping; abort() tells its own process which signal it is
      SCMP_SYS(futex), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
      SCMP_SYS(sigaltstack), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(tgkill), SCMP_SYS(sched_yield),
      SCMP_SYS(sched_getaffinity), SCMP_SYS(restart_syscall), SCMP_SYS(getrusage), SCMP_SYS(prlimit64),
      SCMP_SYS(uname), SCMP_SYS(sysinfo),
      // time and randomness
      SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(getrandom), SCMP_SYS(exit),
      SCMP_SYS(exit_group)};
  const std::unique_ptr<void, void (*)(void*)> filter(seccomp_init(SCMP_ACT_KILL_PROCESS),
                                                      [](void* context) { seccomp_release(context); });
  if (filter == nullptr) {
    return {Reason::system,
            "no system-call filter: the system lets no process be ended for a call, or does not let this one "
            "ask; "
            "in a unit with SystemCallFilter=, allow seccomp"};
  }
  for (const int call : allowed) {
    if (const int failed = seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 0); failed != 0) {
      return {Reason::system, std::string("system-call filter: ") + std::strerror(-failed)};
    }
  }
  // Libraries look for files that they can do without; they hear that there are none.
  for (const int call :
       {SCMP_SYS(openat), SCMP_SYS(readlinkat), SCMP_SYS(readlink), SCMP_SYS(access), SCMP_SYS(faccessat)}) {
    if (const int failed = seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EACCES), call, 0); failed != 0) {
      return {Reason::system, std::string("system-call filter: ") + std::strerror(-failed)};
    }
  }
  if (const int failed = seccomp_load(filter.get()); failed != 0) {
    return {Reason::system, std::string("loading the system-call filter: ") + std::strerror(-failed)};
  }
  return {};
}

}  // namespace

Status confine(int last_descriptor) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return {Reason::system, std::string("no_new_privs: ") + std::strerror(errno)};
  }
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, file_size);
  // The process that started us may have had descriptors without close-on-exec; none is ours.
  ::close_range(static_cast<unsigned>(last_descriptor) + 1, ~0U, 0);
  if (sanitized) return {};
  limit(RLIMIT_AS, address_space);
  return filter_calls();
}

void renew_processor_time() {
  rusage used{};
  rlimit current{};
  if (::getrusage(RUSAGE_SELF, &used) != 0 || ::getrlimit(RLIMIT_CPU, &current) != 0) return;
  const auto spent = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
  // The soft limit alone moves: a hard one could not be raised again.
  const rlimit wanted{std::min(spent + processor_time, current.rlim_max), current.rlim_max};
  ::setrlimit(RLIMIT_CPU, &wanted);
}

}  // namespace eagle::codegen
