// Batch: how much of a launch runs before somebody else may have a turn.
//
// A launch over many samples is cut into batches. Each thread goes on where it stopped in its own share, so
// the map of samples to threads, and every bit, is that of a launch in one piece.
#pragma once

#include <algorithm>
#include <cstdint>

namespace eagle::run {

// What a batch is to take, and how many samples of a thread the first one has, of which nothing is known.
constexpr double batch_s = 0.002;
constexpr std::int64_t first_batch = 64;

// How long batches of one launch have been worth being. For one caller at a time.
class Batches {
public:
  // Samples that each thread takes next.
  [[nodiscard]] std::int64_t next() const { return next_; }
  // A batch in which each thread had up to `samples` took so long. One that was quick says little about
  // larger ones, so they grow step by step.
  void took(std::int64_t samples, double seconds) {
    const double wanted = static_cast<double>(samples) * (batch_s / std::max(seconds, 1e-9));
    const double most = 8.0 * static_cast<double>(std::max(samples, first_batch));
    // Whole cache lines of even a bool plane, as shares are cut.
    next_ = std::max(static_cast<std::int64_t>(std::min(wanted, most)) / grain * grain, grain);
  }
  // Whether a batch is to be timed: a launch that fits into one is, now and then.
  [[nodiscard]] bool watch(std::int64_t share) { return share > next_ || ++unwatched_ % 16 == 0; }

private:
  static constexpr std::int64_t grain = 64;
  std::int64_t next_ = first_batch;
  std::uint32_t unwatched_ = 0;
};

// How far a launch has come: so many samples of each share have run. 0 before it begins and when it is done.
struct Progress {
  std::int64_t done = 0;
};

}  // namespace eagle::run
