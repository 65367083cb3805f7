// Turn: numbered pieces of work that are done at the same time and handed in one after the other.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/base/patience.h"

namespace eagle::run {

// Pieces are numbered from 0. Whoever has done piece n waits for its turn, hands in, and passes the turn on.
// Nobody waits for ever if every thread does its pieces in rising order: the least of those that are left is
// never waited for.
class alignas(64) Turn {
public:
  // The first piece that is handed in; before anybody waits.
  void begin_at(std::int64_t piece) {
    turn_.store(static_cast<std::uint32_t>(piece), std::memory_order_relaxed);
  }
  void wait_for(std::int64_t piece, Patience& patience) {
    const auto wanted =
        static_cast<std::uint32_t>(piece);  // turns are close together, so the low half tells them apart
    if (patience.wait([&] { return turn_.load(std::memory_order_acquire) == wanted; })) return;
    for (std::uint32_t now = turn_.load(std::memory_order_acquire); now != wanted;
         now = turn_.load(std::memory_order_acquire)) {
      turn_.wait(now, std::memory_order_acquire);
    }
  }
  void pass_on(std::int64_t piece) {
    turn_.store(static_cast<std::uint32_t>(piece + 1), std::memory_order_release);
    turn_.notify_all();
  }

private:
  std::atomic<std::uint32_t> turn_ = 0;
};

}  // namespace eagle::run
