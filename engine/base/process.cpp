#include "engine/base/process.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace eagle {
namespace {

// 0 where it must be asked for.
std::atomic<pid_t> known = 0;

void forget() { known.store(0, std::memory_order_relaxed); }

// Only where a fork is noticed may a number be kept.
bool notices_forks() {
  static const bool registered = ::pthread_atfork(nullptr, nullptr, forget) == 0;
  return registered;
}

}  // namespace

pid_t this_process() {
  if (const pid_t process = known.load(std::memory_order_relaxed); process != 0) return process;
  const pid_t process = ::getpid();
  if (notices_forks()) known.store(process, std::memory_order_relaxed);
  return process;
}

}  // namespace eagle
