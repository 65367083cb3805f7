#include "server/log_format.h"

#include <spdlog/details/log_msg.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <string>
#include <string_view>

#include "server/json_text.h"
#include "server/log_context.h"

namespace eagle::server {
namespace {

void append(spdlog::memory_buf_t& line, std::string_view text) {
  line.append(text.data(), text.data() + text.size());
}

// "2026-11-30T04:31:42.123"
std::string time_text(const spdlog::details::log_msg& message, bool utc) {
  using namespace std::chrono;
  const auto since = message.time.time_since_epoch();
  const std::time_t whole = duration_cast<seconds>(since).count();
  std::tm parts{};
  utc ? ::gmtime_r(&whole, &parts) : ::localtime_r(&whole, &parts);
  char text[40];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + size, sizeof text - size, ".%03d",
                static_cast<int>(duration_cast<milliseconds>(since).count() % 1000));
  return text;
}

std::string_view payload_of(const spdlog::details::log_msg& message) {
  return {message.payload.data(), message.payload.size()};
}
std::string_view level_of(const spdlog::details::log_msg& message) {
  const auto& name = spdlog::level::to_string_view(message.level);
  return {name.data(), name.size()};
}

void write_text(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) {
  const LogIds& ids = log_ids();
  append(line, time_text(message, false));
  append(line, " ");
  append(line, level_of(message));
  if (ids.session != 0) append(line, " session=" + id_text(ids.session));
  if (ids.graph != 0) append(line, " graph=" + std::to_string(ids.graph));
  if (ids.launch != 0) append(line, " launch=" + std::to_string(ids.launch));
  if (ids.trace.given()) append(line, " trace=" + ids.trace.trace_text());
  append(line, " ");
  for (const char c : payload_of(message)) line.push_back(c == '\n' || c == '\r' ? ' ' : c);
}

void write_json(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) {
  const LogIds& ids = log_ids();
  append(line, "{\"time\":\"" + time_text(message, true) + "Z\",\"level\":\"");
  append(line, level_of(message));
  append(line, "\"");
  if (ids.session != 0) append(line, ",\"session\":\"" + id_text(ids.session) + "\"");
  if (ids.graph != 0) append(line, ",\"graph\":" + std::to_string(ids.graph));
  if (ids.launch != 0) append(line, ",\"launch\":" + std::to_string(ids.launch));
  if (ids.trace.given()) {
    append(line,
           ",\"trace_id\":\"" + ids.trace.trace_text() + "\",\"span_id\":\"" + ids.trace.span_text() + "\"");
  }
  append(line,
         ",\"pid\":" + std::to_string(::getpid()) + ",\"message\":" + json_string(payload_of(message)) + "}");
}

}  // namespace

std::string id_text(std::uint64_t id) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(id));
  return text;
}

void LogFormat::format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) {
  kind_ == Kind::json ? write_json(message, line) : write_text(message, line);
  line.push_back('\n');
}

}  // namespace eagle::server
