#include "engine/run/streaming.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include "engine/run/host.h"

namespace eagle::run {
namespace {

// Of the last-level cache for a thread, at most: a server's cache has hundreds of megabytes, of its many cores
// and, where the machine is virtual, of other guests.
constexpr std::int64_t most_of_a_thread = 16 << 20;
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

// A launch that writes half of its share or more reads as much, as a rule: what it wrote first is gone before
// anybody reads it.
std::int64_t streamed_from(Streaming streaming) {
  if (streaming == Streaming::off) return std::numeric_limits<std::int64_t>::max();
  if (streaming == Streaming::always) return 0;
  return std::min(last_level_cache(), allowed_threads() * most_of_a_thread) / 2;
}

}  // namespace eagle::run
