// GpuWatch: asks the driver of each GPU now and then whether it is still there, so that one that vanished is
// noticed before somebody needs it.
//
// Each question has a thread of its own, one a GPU at a time: a driver that does not answer holds up nobody,
// and is not asked again before it has.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/cuda/driver.h"

namespace eagle::server {

class GpuWatch {
public:
  using Clock = std::chrono::steady_clock;
  struct Question {
    run::cuda::DeviceInfo gpu;
    std::function<void()> ask;  // keeps what it uses: it may come back when nobody is left
  };
  // `silent`: called by `look` when a GPU has not answered for that long, and again when it has.
  using Silent =
      std::function<void(const run::cuda::DeviceInfo& gpu, bool silent, std::chrono::milliseconds)>;
  explicit GpuWatch(Silent silent) : silent_(std::move(silent)) {}

  // Asks those that were not asked for `period`. From one thread, now and then; does not wait.
  void look(std::vector<Question> questions, std::chrono::milliseconds period,
            std::chrono::milliseconds patience, Clock::time_point now = Clock::now());

private:
  struct Asked {
    Clock::time_point since;
    std::shared_ptr<const std::atomic<bool>> answered;
    bool silent = false;  // and that was told
  };
  const Silent silent_;
  std::map<std::string, Asked> asked_;  // by UUID
};

}  // namespace eagle::server
