// Control: how a caller stops what runs.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

namespace eagle::run {

// Shared between the thread that runs and those that may stop it. `cancel` may be set by any thread at
// any time; work looks at it between chunks. `caller` (optional) is a flag of the caller's own, looked at
// likewise: in process, a client's cancel flag reaches the work without a thread in between.
struct Control {
  std::atomic<bool> cancel = false;
  std::shared_ptr<const std::atomic<bool>> caller;
  std::optional<std::chrono::steady_clock::time_point> deadline;

  [[nodiscard]] bool cancelled() const {
    return cancel.load(std::memory_order_relaxed) || (caller && caller->load(std::memory_order_relaxed));
  }
  // The flag that running kernels look at: the caller's where there is one.
  [[nodiscard]] const std::atomic<bool>& flag() const { return caller ? *caller : cancel; }
  [[nodiscard]] bool expired() const { return deadline && std::chrono::steady_clock::now() >= *deadline; }
};

}  // namespace eagle::run
