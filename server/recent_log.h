// RecentLog: the newest log lines, for operators who ask, in memory that a keeper and its workers share: what
// one worker said in its last moments the next one tells.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "engine/plane/memory.h"

namespace eagle::server {

// Thread-safe, as sinks of spdlog's that have a mutex are. Between processes nobody waits for anybody, so
// that none who dies holds a lock: a line that two wrote at once, or that its writer did not finish, may be
// mixed up with another.
class RecentLog final : public spdlog::sinks::base_sink<std::mutex> {
public:
  static constexpr std::size_t most_lines = 4096;
  static constexpr std::size_t most_bytes = 512u << 10;
  static constexpr std::size_t most_line_bytes = 8u << 10;  // what is longer is cut

  // Fresh, or the one behind the descriptor of another process. OUT_OF_MEMORY, SYSTEM, BAD_MESSAGE.
  static StatusOr<std::shared_ptr<RecentLog>> create();
  static StatusOr<std::shared_ptr<RecentLog>> open(UniqueFd fd);

  [[nodiscard]] int fd() const { return memory_.fd(); }
  // At most so many, the oldest of them first; without their newlines.
  std::vector<std::string> newest(std::size_t lines = most_lines);

private:
  struct Shared;
  explicit RecentLog(plane::Memory memory) : memory_(std::move(memory)) {}
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  [[nodiscard]] Shared& shared() const;

  const plane::Memory memory_;
};

}  // namespace eagle::server
