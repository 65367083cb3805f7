// Counters of what an engine has done, shared by the engine and all that it made.
#pragma once

#include <atomic>
#include <cstdint>

namespace eagle::run {

struct Counters {
  std::atomic<std::uint64_t> graph_builds = 0;
  std::atomic<std::uint64_t> rebinds = 0;
  std::atomic<std::uint64_t> updates = 0;
  std::atomic<std::uint64_t> launches = 0;  // whole replays and passes
  std::atomic<std::uint64_t> runs = 0;      // that ended
};

inline void count(std::atomic<std::uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

}  // namespace eagle::run
