// TileLine: how far a team takes tiles that are handed in one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace eagle::run {

// Threads begin tiles, each its own in rising order. Whoever closes the line lets those be begun that lie
// before one that has begun, because that one's turn comes after theirs, and no others: in the end all tiles
// before `end()` have run and none behind. Thread-safe.
class TileLine {
public:
  // Tiles [first, end).
  TileLine(std::int64_t first, std::int64_t end) : first_(first), begun_(first), end_(end) {}

  [[nodiscard]] std::int64_t first() const { return first_; }
  // Whether the tile is to be run.
  bool begin(std::int64_t tile) {
    const std::scoped_lock lock(mutex_);
    if (tile >= end_) return false;
    begun_ = std::max(begun_, tile + 1);
    return true;
  }
  // Some tile has begun.
  void close() {
    const std::scoped_lock lock(mutex_);
    end_ = std::min(end_, begun_);
  }
  // Once all threads have left.
  [[nodiscard]] std::int64_t end() const { return end_; }

private:
  std::mutex mutex_;
  const std::int64_t first_;
  std::int64_t begun_;  // one past the last tile that has
  std::int64_t end_;
};

}  // namespace eagle::run
