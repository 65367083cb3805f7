// Moving the counters of eagle/client/counters.h.
#pragma once

#include <atomic>
#include <cstdint>

namespace eagle::counting {

struct Atomics {
  std::atomic<std::uint64_t> graph_builds = 0;
  std::atomic<std::uint64_t> binds = 0;
  std::atomic<std::uint64_t> rebinds = 0;
  std::atomic<std::uint64_t> updates = 0;
  std::atomic<std::uint64_t> launches = 0;
  std::atomic<std::uint64_t> runs = 0;
  std::atomic<std::uint64_t> compiles = 0;
};
Atomics& of_process();

inline void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount = 1) {
  counter.fetch_add(amount, std::memory_order_relaxed);
}

}  // namespace eagle::counting
