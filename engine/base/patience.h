// Patience: how long to wait for another thread without sleeping, as far as that has paid lately.
//
// Sleeping costs some ten microseconds where the other one is about to be done, and waiting costs a processor
// where it is not: because it has much to do, or because it has no processor itself.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "engine/base/spin.h"
#include "engine/base/ticks.h"

namespace eagle {

// Thread-safe; what several threads learn at the same time, one of them does.
class Patience {
public:
  // A wait lasts so many seconds at least and at most; a longest of 0: none.
  Patience(double shortest_s, double longest_s)
      : shortest_s_(shortest_s), longest_s_(longest_s), now_s_(longest_s) {}

  // Whether `done()` came true before the time was up. The time is half of what it was after a wait in vain, a
  // little more than before after another one, and at least four times what that took: to sleep and be woken
  // costs more than to wait a while in vain. And now and then the longest, since what was slow may be quick
  // now.
  template <typename Done>
  bool wait(const Done& done) {
    if (done()) return true;
    const double patience = next();
    if (patience == 0) return false;
    const Ticks begun = ticks_now();
    double waited = 0;
    bool is_done = false;
    do {
      for (int i = 0; i < looks && !is_done; ++i) {
        pause_a_little();
        is_done = done();
      }
      waited = seconds_of(ticks_now() - begun);
    } while (!is_done && waited < patience);
    const double before = now_s_.load(std::memory_order_relaxed);
    const double wanted = is_done ? std::max(4 * waited, before * 9 / 8) : before / 2;
    now_s_.store(std::clamp(wanted, shortest_s_, longest_s_), std::memory_order_relaxed);
    return is_done;
  }

private:
  static constexpr int looks = 32;  // at what is awaited, for one at the clock
  static constexpr std::uint32_t waits_between_trials = 64;

  double next() {
    const bool tries_again = waits_.fetch_add(1, std::memory_order_relaxed) % waits_between_trials == 0;
    return tries_again ? longest_s_ : now_s_.load(std::memory_order_relaxed);
  }

  const double shortest_s_;
  const double longest_s_;
  std::atomic<double> now_s_;
  std::atomic<std::uint32_t> waits_ = 0;
};

}  // namespace eagle
