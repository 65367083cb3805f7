#include "server/recent_log.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <utility>

namespace eagle::server {

// A memfd begins as zeros: nothing was written. What another process has stored here is not relied on: any
// number is a place within the text.
struct RecentLog::Shared {
  std::atomic<std::uint64_t> written;  // bytes, ever; the text goes round
  char text[most_bytes];
};

StatusOr<std::shared_ptr<RecentLog>> RecentLog::create() {
  EAGLE_ASSIGN_OR_RETURN(plane::Memory memory, plane::Memory::create(sizeof(Shared), "eagled-log"));
  return std::shared_ptr<RecentLog>(new RecentLog(std::move(memory)));
}

StatusOr<std::shared_ptr<RecentLog>> RecentLog::open(UniqueFd fd) {
  EAGLE_ASSIGN_OR_RETURN(plane::Memory memory, plane::Memory::map(std::move(fd), sizeof(Shared)));
  return std::shared_ptr<RecentLog>(new RecentLog(std::move(memory)));
}

RecentLog::Shared& RecentLog::shared() const { return *reinterpret_cast<Shared*>(memory_.data()); }

std::vector<std::string> RecentLog::newest(std::size_t lines) {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t end = shared().written.load(std::memory_order_acquire);
    const std::uint64_t begin = end - std::min<std::uint64_t>(end, most_bytes);
    text.resize(end - begin);
    const std::size_t from = begin % most_bytes;
    const std::size_t first = std::min<std::size_t>(text.size(), most_bytes - from);
    std::memcpy(text.data(), shared().text + from, first);
    std::memcpy(text.data() + first, shared().text, text.size() - first);
    if (begin > 0) text.erase(0, std::min(text.size(), text.find('\n') + 1));  // half a line
  }
  std::erase(text, '\0');  // reserved, and its writer died
  std::vector<std::string> found;
  for (std::size_t end = text.size(); found.size() < lines && end > 0;) {
    const std::size_t newline = text.rfind('\n', end - 1);
    if (newline == std::string::npos) {
      found.push_back(text.substr(0, end));
      break;
    }
    if (newline + 1 < end) found.push_back(text.substr(newline + 1, end - newline - 1));
    end = newline;
  }
  std::reverse(found.begin(), found.end());
  return found;
}

void RecentLog::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  while (line.size() > 0 && line[line.size() - 1] == '\n') line.resize(line.size() - 1);
  if (line.size() > most_line_bytes) line.resize(most_line_bytes);
  line.push_back('\n');
  const std::uint64_t at = shared().written.fetch_add(line.size(), std::memory_order_acq_rel);
  const std::size_t from = at % most_bytes;
  const std::size_t first = std::min<std::size_t>(line.size(), most_bytes - from);
  std::memcpy(shared().text + from, line.data(), first);
  std::memcpy(shared().text, line.data() + first, line.size() - first);
}

}  // namespace eagle::server
