// LogSink: lines to a descriptor that may be slow, full or unread. No line is worth waiting for: what cannot
// be written at once is dropped, and the next line that can says how many were.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "engine/base/unique_fd.h"

namespace eagle::server {

// Thread-safe, as sinks of spdlog's that have a mutex are.
class LogSink final : public spdlog::sinks::base_sink<std::mutex> {
public:
  // `fd`: a file, pipe, terminal or socket; it stays the caller's. The flags of what it refers to, which
  // others may share, stay as they are.
  explicit LogSink(int fd);

private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  // Whether it will be there: written whole, or begun, in which case nothing else is written before its rest.
  bool write_now(std::string_view text);
  // As write(2), without waiting.
  ssize_t put(std::string_view text);

  const int fd_;
  const bool socket_;
  const UniqueFd unblocked_;  // the same place, opened anew so that writing to it never waits; or invalid
  std::uint64_t dropped_ = 0;
  std::string rest_;  // of a line that is there in part
};

}  // namespace eagle::server
