// Streaming: when kernels store past the caches.
#pragma once

#include <cstdint>

#include "engine/base/status.h"

namespace eagle::run {

enum class Streaming : std::uint8_t {
  off,
  large,   // where a launch writes more than its share of the last-level cache holds
  always,  // wherever a kernel can; for tests
};

// EAGLED_STREAMING where set ("off", "large", "always"), else large. BAD_VALUE names what is known.
StatusOr<Streaming> default_streaming();

// A launch that writes at least so many bytes streams.
std::int64_t streamed_from(Streaming streaming);

}  // namespace eagle::run
