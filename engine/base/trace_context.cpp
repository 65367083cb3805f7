#include "engine/base/trace_context.h"

#include <algorithm>
#include <span>

#include "engine/base/hex.h"

namespace eagle {
namespace {

// Of a lower-case digit, else -1: the standard allows no others.
int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool read(std::string_view hex, std::span<std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = digit(hex[2 * i]);
    const int low = digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

bool zero(std::span<const std::uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

std::string TraceContext::trace_text() const { return to_hex(trace_id); }
std::string TraceContext::span_text() const { return to_hex(span_id); }
std::string TraceContext::text() const {
  return given() ? "00-" + trace_text() + "-" + span_text() + "-" + to_hex({&flags, 1}) : "";
}

std::optional<TraceContext> trace_context(std::string_view text) {
  constexpr std::size_t size = 55;  // 00-32-16-02
  if (text.size() < size || text[2] != '-' || text[35] != '-' || text[52] != '-') return {};
  std::uint8_t version = 0;
  TraceContext context;
  if (!read(text.substr(0, 2), {&version, 1}) || !read(text.substr(3, 32), context.trace_id) ||
      !read(text.substr(36, 16), context.span_id) || !read(text.substr(53, 2), {&context.flags, 1})) {
    return {};
  }
  const bool ends_there = version == 0 ? text.size() == size : text.size() == size || text[size] == '-';
  if (version == 0xff || !ends_there || zero(context.trace_id) || zero(context.span_id)) return {};
  return context;
}

}  // namespace eagle
