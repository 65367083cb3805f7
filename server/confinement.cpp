#include "server/confinement.h"

#include <sched.h>
#include <seccomp.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

namespace eagle::server {
namespace {

// Other processes, the kernel itself, other namespaces and file systems, and what has been a way into the
// kernel more than once. A list of what may be called would depend on the versions of gRPC, libgomp and the C
// library; the helper that compiles what clients describe has such a list.
constexpr int forbidden[] = {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    SCMP_SYS(ptrace),       // with which LeakSanitizer stops its own threads
    SCMP_SYS(personality),  // with which sanitizers put memory where they want it
#endif
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(process_madvise),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(kcmp),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(acct),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(setns),
    SCMP_SYS(unshare),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(open_tree),
    SCMP_SYS(move_mount),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(fanotify_mark),
    SCMP_SYS(quotactl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(keyctl),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(syslog),
    SCMP_SYS(vhangup),
    SCMP_SYS(setuid),
    SCMP_SYS(setgid),
    SCMP_SYS(setreuid),
    SCMP_SYS(setregid),
    SCMP_SYS(setresuid),
    SCMP_SYS(setresgid),
    SCMP_SYS(setgroups),
    SCMP_SYS(setfsuid),
    SCMP_SYS(setfsgid),
};

// Threads and processes are made with clone; namespaces, by one of these flags, are not. (CLONE_NEWTIME is
// not for clone.)
constexpr std::uint64_t namespaces[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                        CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};

// Of a system call, where `condition` holds. OK where this machine does not have the call.
Status forbid(scmp_filter_ctx filter, int call, int error, const scmp_arg_cmp* condition = nullptr) {
  const int added = condition == nullptr
                        ? ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), call, 0)
                        : ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), call, 1, *condition);
  if (added == 0 || added == -EDOM) return {};
  return {Reason::system, "seccomp_rule_add: " + std::string(std::strerror(-added))};
}

Status forbid_namespaces(scmp_filter_ctx filter) {
  for (const std::uint64_t flag : namespaces) {
    const scmp_arg_cmp has{0, SCMP_CMP_MASKED_EQ, flag, flag};
    EAGLE_RETURN_IF_ERROR(forbid(filter, SCMP_SYS(clone), EPERM, &has));
  }
  // Its flags lie in memory, where no filter can look. The C library takes clone where there is none.
  return forbid(filter, SCMP_SYS(clone3), ENOSYS);
}

}  // namespace

Status confine() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return {Reason::system, std::string("prctl(PR_SET_NO_NEW_PRIVS): ") + std::strerror(errno)};
  }
  const std::unique_ptr<void, decltype(&::seccomp_release)> filter(::seccomp_init(SCMP_ACT_ALLOW),
                                                                   ::seccomp_release);
  if (!filter) return {Reason::system, "seccomp_init failed"};
  for (const int call : forbidden) EAGLE_RETURN_IF_ERROR(forbid(filter.get(), call, EPERM));
  EAGLE_RETURN_IF_ERROR(forbid_namespaces(filter.get()));
  if (const int loaded = ::seccomp_load(filter.get()); loaded != 0) {
    spdlog::warn("no filter of system calls: this kernel has none ({})", std::strerror(-loaded));
  }
  return {};
}

}  // namespace eagle::server
