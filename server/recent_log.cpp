#include "server/recent_log.h"

#include <algorithm>

namespace eagle::server {

std::vector<std::string> RecentLog::newest(std::size_t lines) {
  const std::lock_guard lock(mutex_);
  const std::size_t count = std::min(lines, lines_.size());
  return {lines_.end() - static_cast<std::ptrdiff_t>(count), lines_.end()};
}

void RecentLog::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  while (line.size() > 0 && line[line.size() - 1] == '\n') line.resize(line.size() - 1);
  lines_.emplace_back(line.data(), std::min(line.size(), most_bytes));
  bytes_ += lines_.back().size();
  while (lines_.size() > most_lines || bytes_ > most_bytes) {
    bytes_ -= lines_.front().size();
    lines_.pop_front();
  }
}

}  // namespace eagle::server
