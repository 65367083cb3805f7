// Node times: what the nodes of a graph take, for people who look at it; nothing is decided by it.
//
// One replay is measured now and then, the first one among them, so that replays of a microsecond do not
// notice. Of samples that are dealt out to a team only one thread's are measured: the others have as many.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/base/ticks.h"
#include "engine/graph/graph.h"

namespace eagle::run {

struct NodeTime {
  const graph::Node* node = nullptr;  // of the graph; a launch, copy, reduction or host node, in any body
  double seconds = 0;                 // of a replay, by the clock, in all bodies of a loop together
  // Nodes that were compiled to one function share its time: so many, itself included.
  std::uint32_t together = 1;
};

struct NodeTimes {
  std::uint64_t replays = 0;    // that were measured; 0: nothing is known yet
  std::vector<NodeTime> nodes;  // kind by kind, in the order of a walk through the graph
};

// Ticks of one thing. One thread at a time adds, any thread reads.
class TickSum {
public:
  void add(Ticks ticks) { store(ticks_() + ticks); }
  void halve() { store(ticks_() / 2); }
  [[nodiscard]] double seconds() const { return seconds_of(ticks_()); }

private:
  [[nodiscard]] Ticks ticks_() const { return sum_.load(std::memory_order_relaxed); }
  void store(Ticks ticks) { sum_.store(ticks, std::memory_order_relaxed); }
  std::atomic<Ticks> sum_ = 0;
};

// Which replays are measured. `begins` and `ends` are for the one thread that replays.
class MeasuredReplays {
public:
  static constexpr double period_s = 0.01;         // at most one replay in so long
  static constexpr std::uint64_t remembered = 64;  // then all sums are halved, so that the newest count most

  // Whether a replay that begins at `now` is measured.
  bool begins(Ticks now) {
    if (begun_ && now - last_ < ticks_of(period_s)) return false;
    begun_ = true;
    last_ = now;
    return true;
  }
  // A measured one is whole. Whether the sums are to be halved, as this count is.
  bool ends() {
    const std::uint64_t count = count_.load(std::memory_order_relaxed) + 1;
    count_.store(count == remembered ? count / 2 : count, std::memory_order_relaxed);
    return count == remembered;
  }
  [[nodiscard]] std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

private:
  bool begun_ = false;
  Ticks last_ = 0;
  std::atomic<std::uint64_t> count_ = 0;
};

}  // namespace eagle::run
