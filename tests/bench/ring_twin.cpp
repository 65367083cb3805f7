#include "tests/bench/ring_twin.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <csignal>
#include <new>

#include "tests/bench/need.h"

namespace eagle::bench {
namespace {

using Clock = std::chrono::steady_clock;

// As long as the worker of eagled looks around before it sleeps.
constexpr std::chrono::microseconds server_spin{50};

void wait(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
}
void wake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

struct RingTwin::Shared {
  struct alignas(64) Slot {
    std::atomic<std::uint32_t> posted{0};
    std::atomic<std::uint32_t> sleeping{0};
  };
  std::array<Slot, slots> slot;
  alignas(64) std::atomic<std::uint32_t> asleep{0};
  alignas(64) std::atomic<std::uint64_t> calls{0};
};

RingTwin::RingTwin(const std::function<void()>& work) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) die("no shared memory for the ring twin");
  shared_ = new (memory) Shared;
  const pid_t parent = ::getpid();
  child_ = ::fork();
  if (child_ < 0) die("cannot fork the ring twin");
  if (child_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) serve(*shared_, work);
    ::_exit(0);
  }
}

RingTwin::~RingTwin() {
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  ::munmap(shared_, sizeof(Shared));
}

void RingTwin::serve(Shared& shared, const std::function<void()>& work) {
  Clock::time_point busy = Clock::now();
  for (;;) {
    bool any = false;
    for (Shared::Slot& slot : shared.slot) {
      if (slot.posted.load(std::memory_order_acquire) == 0) continue;
      work();
      shared.calls.fetch_add(1, std::memory_order_relaxed);
      slot.posted.store(0, std::memory_order_seq_cst);
      if (slot.sleeping.load(std::memory_order_seq_cst) != 0) wake(slot.posted);
      any = true;
    }
    if (any) {
      busy = Clock::now();
    } else if (Clock::now() - busy > server_spin) {
      shared.asleep.store(1, std::memory_order_seq_cst);
      bool posted = false;
      for (const Shared::Slot& slot : shared.slot) posted |= slot.posted.load(std::memory_order_seq_cst) != 0;
      if (!posted) wait(shared.asleep, 1);
      shared.asleep.store(0, std::memory_order_seq_cst);
      busy = Clock::now();
    } else {
      relax();
    }
  }
}

void RingTwin::call(std::size_t number, std::int64_t spin_ns) {
  Shared::Slot& slot = shared_->slot[number];
  slot.posted.store(1, std::memory_order_seq_cst);
  if (shared_->asleep.load(std::memory_order_seq_cst) != 0 &&
      shared_->asleep.exchange(0, std::memory_order_seq_cst) != 0)
    wake(shared_->asleep);
  if (spin_ns > 0) {
    const Clock::time_point end = Clock::now() + std::chrono::nanoseconds(spin_ns);
    do {
      for (int i = 0; i < 32; ++i) {
        if (slot.posted.load(std::memory_order_acquire) == 0) return;
        relax();
      }
    } while (Clock::now() < end);
  }
  slot.sleeping.store(1, std::memory_order_seq_cst);
  while (slot.posted.load(std::memory_order_seq_cst) != 0) wait(slot.posted, 1);
  slot.sleeping.store(0, std::memory_order_relaxed);
}

std::uint64_t RingTwin::calls() const { return shared_->calls.load(); }

}  // namespace eagle::bench
