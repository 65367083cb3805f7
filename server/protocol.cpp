#include "server/protocol.h"

#include <algorithm>
#include <string>

namespace eagle::server {

StatusOr<std::uint32_t> common_protocol(std::uint32_t lowest, std::uint32_t highest) {
  const std::uint32_t common = std::min(highest, protocol_max);
  if (lowest <= highest && common >= std::max(lowest, protocol_min)) return common;
  return Status(Reason::protocol_mismatch,
                "the client speaks protocol versions " + std::to_string(lowest) + " to " +
                    std::to_string(highest) + ", this daemon (" EAGLE_VERSION ") " +
                    std::to_string(protocol_min) + " to " + std::to_string(protocol_max) + "; upgrade the " +
                    (highest < protocol_min ? "client" : "daemon, or use an older client"));
}

}  // namespace eagle::server
