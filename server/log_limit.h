// LogLimit: bounds lines that whoever may connect can bring about at will, so that they push nothing else out
// of the log.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace eagle::server {

// Thread-safe.
class LogLimit {
public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint32_t lines = 50;  // in each `window`
  static constexpr std::chrono::seconds window{10};

  // Where a line may be written now: what to put at its end, which tells how many like it were left out
  // before; else nothing.
  std::optional<std::string> admit(Clock::time_point now = Clock::now()) {
    const std::lock_guard lock(mutex_);
    if (now - began_ >= window) {
      began_ = now;
      written_ = 0;
    }
    if (written_ >= lines) {
      ++left_out_;
      return std::nullopt;
    }
    ++written_;
    const std::uint64_t before = std::exchange(left_out_, 0);
    return before == 0 ? std::string() : " (" + std::to_string(before) + " lines like it were left out)";
  }

private:
  std::mutex mutex_;
  Clock::time_point began_{};
  std::uint32_t written_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace eagle::server
