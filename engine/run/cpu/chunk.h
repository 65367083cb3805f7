// Chunk: how many samples a thread runs before it looks at its slice again.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "engine/base/ticks.h"

namespace eagle::run {

// What a chunk is to take: long beside a call of compiled code, short beside a slice.
constexpr double chunk_s = 0.0001;

// How long chunks of one launch have been worth being. Threads may look while one of them learns.
class Chunk {
public:
  // Nothing is known of a kernel before it has run, and one sample may hold a long loop: so the first chunk
  // has `least` samples, >= 1.
  explicit Chunk(std::int64_t least) : least_(least), size_(least) {}

  [[nodiscard]] std::int64_t least() const { return least_; }
  [[nodiscard]] std::int64_t size() const { return std::atomic_ref(size_).load(std::memory_order_relaxed); }
  // So many samples took so long. Few that were quick say little about many, so it grows step by step.
  void took(std::int64_t samples, double seconds) {
    const double wanted = static_cast<double>(samples) * (chunk_s / std::max(seconds, 1e-9));
    const double most = 8.0 * static_cast<double>(std::max(samples, least_));
    const auto rounded = static_cast<std::int64_t>(std::min(wanted, most)) / least_ * least_;
    std::atomic_ref(size_).store(std::max(rounded, least_), std::memory_order_relaxed);
  }
  // Whether a chunk is to be timed: a launch that fits into one is, now and then. Of the thread that learns.
  [[nodiscard]] bool watch(std::int64_t share) { return share > size() || ++unwatched_ % 16 == 0; }

private:
  std::int64_t least_;
  alignas(std::atomic_ref<std::int64_t>::required_alignment) mutable std::int64_t size_;
  std::uint32_t unwatched_ = 0;
};

}  // namespace eagle::run
