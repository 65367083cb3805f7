// LogFormat: one line an event, as text or as a JSON object, with the ids of log_context.h.
#pragma once

#include <spdlog/formatter.h>

#include <cstdint>
#include <memory>

namespace eagle::server {

// text: `2026-11-30T04:31:42.123 info session=00f1... graph=3 launch=7 trace=4bf9... what happened`, local
// time. json: {"time":"2026-11-30T04:31:42.123Z","level":"info","session":"00f1...","graph":3,"launch":7,
//        "trace_id":"4bf9...","span_id":"00f0...","pid":12,"message":"what happened"}; ids that there are not
//        are left
// out. Whatever the message holds, it is one line.
class LogFormat final : public spdlog::formatter {
public:
  enum class Kind : std::uint8_t { text, json };
  explicit LogFormat(Kind kind) : kind_(kind) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override;
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LogFormat>(kind_);
  }

private:
  const Kind kind_;
};

}  // namespace eagle::server
