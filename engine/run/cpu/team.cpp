#include "engine/run/cpu/team.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/futex.h"
#include "engine/base/spin.h"
#include "engine/base/ticks.h"
#include "engine/kernel/float_environment.h"
#include "engine/run/cpu/team_place.h"

namespace eagle::run {
namespace {

// How long a thread looks before it sleeps: longer than a region takes to open, shorter than anybody notices
// who wants the processor; for those that compute beside it, longer, since to wake up takes some 30 us. A
// quarter of what its own part took, since parts are of one size.
constexpr double shortest_spin_s = 5e-6;
constexpr double longest_spin_s = 50e-6;
constexpr Ticks part_of_own = 4;

Ticks spin_beside(Ticks own_part) {
  static const Ticks shortest = ticks_of(shortest_spin_s), longest = ticks_of(longest_spin_s);
  return std::clamp(own_part / part_of_own, shortest, longest);
}

void call_in_place(TeamBody call, const void* body, int thread, int threads) {
  const kernel::FloatEnvironment environment;
  call(body, thread, threads);
}

// A word that one thread waits at and another one raises. What was stored before it was raised is seen by
// whoever finds it raised.
class alignas(64) Signal {
public:
  enum Word : std::uint32_t { none, work, leave, asleep };

  void raise(Word word) {
    if (word_.exchange(word, std::memory_order_acq_rel) == asleep) futex_wake(word_);
  }

  // Takes down what was raised.
  Word wait(Ticks spin) {
    const Ticks begin = ticks_now();
    std::uint32_t word = word_.load(std::memory_order_acquire);
    while (word == none && ticks_now() - begin < spin) {
      pause_a_little();
      word = word_.load(std::memory_order_acquire);
    }
    if (word == none && word_.compare_exchange_strong(word, asleep, std::memory_order_acq_rel)) word = asleep;
    while (word == asleep) {
      futex_wait(word_, asleep, std::chrono::seconds(1));
      word = word_.load(std::memory_order_acquire);
    }
    word_.store(none, std::memory_order_relaxed);
    return static_cast<Word>(word);
  }

private:
  std::atomic<std::uint32_t> word_ = none;
};

// One piece of work, of which each thread has a part. The first one waits for the others.
class Parts {
public:
  // Before anybody else knows of it, and while nobody has a part of the one before.
  void begin() {
    begun_.store(0, std::memory_order_relaxed);
    ended_.store(0, std::memory_order_relaxed);
    from_ = TeamCall::here();
  }

  // What its part took.
  Ticks run(TeamBody call, const void* body, int thread, int threads) {
    static thread_local TeamPlace place;
    if (thread > 0) {
      begun_.fetch_add(1, std::memory_order_relaxed);
      place.take(from_, thread, threads);
    }
    const Ticks begun = ticks_now();
    call_in_place(call, body, thread, threads);
    const Ticks took = ticks_now() - begun;
    if (thread > 0 && ended_.fetch_add(1, std::memory_order_acq_rel) == threads - 2)
      done_.raise(Signal::work);
    return took;
  }

  void wait(Ticks own_part, int threads) {
    if (threads <= 1) return;
    const bool all_compute = begun_.load(std::memory_order_relaxed) == threads - 1;
    done_.wait(all_compute ? spin_beside(own_part) : spin_beside(0));
  }

private:
  std::atomic<int> begun_ = 0, ended_ = 0;  // besides the first
  Signal done_;                             // raised by the last one that has ended
  TeamCall from_ = {};
};

// The threads of one region that serve the first of them. It alone calls `lead` and `run`.
class HeldTeam {
public:
  explicit HeldTeam(int threads) : calls_(static_cast<std::size_t>(threads)) {}

  // What the first thread does; the others leave afterwards.
  void lead(int threads, HeldBody call, const void* body);
  // What each other one does meanwhile.
  void serve(int thread);
  void run(int wanted, TeamBody call, const void* body);

  // Of the calling thread; null within what its team runs.
  static thread_local HeldTeam* held;

private:
  int threads_ = 1;
  std::vector<Signal> calls_;  // by thread
  // Of the work in hand. Threads that it does not want do not look.
  Parts parts_;
  TeamBody call_ = nullptr;
  const void* body_ = nullptr;
  int of_ = 1;
};

thread_local HeldTeam* HeldTeam::held = nullptr;

void HeldTeam::lead(int threads, HeldBody call, const void* body) {
  threads_ = threads;
  held = this;
  call(body);
  held = nullptr;
  for (int thread = 1; thread < threads_; ++thread)
    calls_[static_cast<std::size_t>(thread)].raise(Signal::leave);
}

void HeldTeam::serve(int thread) {
  Signal& mine = calls_[static_cast<std::size_t>(thread)];
  Ticks part = 0;
  while (mine.wait(spin_beside(part)) == Signal::work) part = parts_.run(call_, body_, thread, of_);
}

void HeldTeam::run(int wanted, TeamBody call, const void* body) {
  call_ = call;
  body_ = body;
  of_ = std::min(wanted, threads_);
  parts_.begin();
  for (int thread = 1; thread < of_; ++thread) calls_[static_cast<std::size_t>(thread)].raise(Signal::work);
  held = nullptr;  // whatever wants a team in there is in one
  const Ticks part = parts_.run(call, body, 0, of_);
  held = this;
  parts_.wait(part, of_);
}

}  // namespace

bool may_have_team() { return HeldTeam::held != nullptr || omp_in_parallel() == 0; }

void run_team(int wanted, TeamBody call, const void* body) {
  if (wanted <= 1 || !may_have_team()) return call_in_place(call, body, 0, 1);
  if (HeldTeam::held != nullptr) return HeldTeam::held->run(wanted, call, body);
  Parts parts;
  parts.begin();
#pragma omp parallel num_threads(wanted)
  {
    const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    const Ticks part = parts.run(call, body, thread, threads);
    if (thread == 0) parts.wait(part, threads);
  }
}

void hold_team(int threads, HeldBody call, const void* body) {
  if (threads <= 1 || HeldTeam::held != nullptr || omp_in_parallel() != 0) return call(body);
  HeldTeam team(threads);
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_thread_num() == 0) {
      team.lead(omp_get_num_threads(), call, body);
    } else {
      team.serve(omp_get_thread_num());
    }
  }
}

}  // namespace eagle::run
