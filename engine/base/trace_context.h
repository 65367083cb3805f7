// TraceContext: which trace of a user's a call belongs to (W3C Trace Context, level 1: `traceparent`).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eagle {

struct TraceContext {
  std::array<std::uint8_t, 16> trace_id = {};  // all zeros: none
  std::array<std::uint8_t, 8> span_id = {};    // of the caller
  std::uint8_t flags = 0;

  [[nodiscard]] bool given() const { return trace_id != std::array<std::uint8_t, 16>{}; }
  // Lower-case hexadecimal.
  [[nodiscard]] std::string trace_text() const;
  [[nodiscard]] std::string span_text() const;
  // "00-TRACE-SPAN-FLAGS"; empty where there is none.
  [[nodiscard]] std::string text() const;
  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

// Empty for what is no traceparent: those are ignored, as the standard has it. What a version above 00 adds
// at the end is left out.
std::optional<TraceContext> trace_context(std::string_view traceparent);

}  // namespace eagle
