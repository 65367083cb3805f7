#include "engine/run/streaming.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace eagle::run {
namespace {

// Where the system does not say: what a few threads of a processor of many have.
constexpr std::int64_t usual_cache = 32 << 20;

// Of the first processor, as the kernel's files have it. The C library counts those of all that the machine
// may have, and says 256 MiB where a virtual one has 32.
std::int64_t last_level_cache() {
  std::int64_t kib = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    std::int64_t found = 0;
    if (file >> found) kib = std::max(kib, found);  // "32768K"
  }
  return kib > 0 ? kib << 10 : usual_cache;
}

}  // namespace

StatusOr<Streaming> default_streaming() {
  const char* said = std::getenv("EAGLED_STREAMING");
  const std::string_view value = said == nullptr ? "" : said;
  if (value.empty() || value == "large") return Streaming::large;
  if (value == "always") return Streaming::always;
  if (value == "off") return Streaming::off;
  return Status(Reason::bad_value, "EAGLED_STREAMING=" + std::string(value) +
                                       " is none of off, large and always; unset it for large");
}

// A launch that writes half of the cache or more reads as much, as a rule: what it wrote first is gone before
// anybody reads it.
std::int64_t streamed_from(Streaming streaming) {
  if (streaming == Streaming::off) return std::numeric_limits<std::int64_t>::max();
  return streaming == Streaming::always ? 0 : last_level_cache() / 2;
}

}  // namespace eagle::run
