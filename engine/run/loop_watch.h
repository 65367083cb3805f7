// LoopWatch: carries the wish to stop into loops of kernels.
//
// Compiled loops look at one flag, and there are three ways to stop a run: the flag of its control, that of
// its caller, and its deadline. While a watch lives, a thread looks at all of them every two milliseconds and
// sets the one flag. For kernels whose loops may last (engine/kernel/long_loops.h); others are stopped
// between batches and windows, without a thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "engine/run/control.h"

namespace eagle::run {

class LoopWatch {
public:
  explicit LoopWatch(std::shared_ptr<const Control> watched)
      : watched_(std::move(watched)), thread_([this](const std::stop_token& ended) { watch(ended); }) {}

  // What kernels get: cancelled once the watched one is cancelled or expired.
  [[nodiscard]] const Control& control() const { return control_; }

private:
  void watch(const std::stop_token& ended) {
    std::unique_lock lock(mutex_);
    while (!ended.stop_requested()) {
      if (watched_->cancelled() || watched_->expired()) {
        control_.cancel.store(true, std::memory_order_relaxed);
        return;
      }
      changed_.wait_for(lock, ended, std::chrono::milliseconds(2), [] { return false; });
    }
  }

  const std::shared_ptr<const Control> watched_;
  Control control_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace eagle::run
