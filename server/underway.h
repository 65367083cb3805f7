// Underway: the calls that a drain waits for, besides the executor's jobs: builds, transfers, requests for
// memory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>

namespace eagle::server {

// Thread-safe. Outlives what it counts.
class Underway {
public:
  // Counts until the last copy is gone.
  using Token = std::shared_ptr<const void>;
  [[nodiscard]] Token enter() {
    {
      const std::lock_guard lock(mutex_);
      ++count_;
    }
    return {this, [](Underway* counted) { counted->leave(); }};
  }
  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  // Returns when there are none, or when `stop` becomes true (see `wake`).
  void wait_until_none(const std::atomic<bool>& stop) {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [&] { return count_ == 0 || stop; });
  }
  // Makes `wait_until_none` look at its flag again.
  void wake() {
    const std::lock_guard lock(mutex_);
    none_.notify_all();
  }

private:
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable none_;
  std::size_t count_ = 0;
};

}  // namespace eagle::server
