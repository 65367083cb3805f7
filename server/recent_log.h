// RecentLog: the newest log lines, in memory, for operators who ask.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace eagle::server {

// Thread-safe, as sinks of spdlog's that have a mutex are.
class RecentLog final : public spdlog::sinks::base_sink<std::mutex> {
public:
  static constexpr std::size_t most_lines = 4096;
  static constexpr std::size_t most_bytes = 512u << 10;

  // At most so many, the oldest of them first; without their newlines.
  std::vector<std::string> newest(std::size_t lines = most_lines);

private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

  std::deque<std::string> lines_;
  std::size_t bytes_ = 0;
};

}  // namespace eagle::server
