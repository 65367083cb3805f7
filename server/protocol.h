// The protocol versions that this daemon speaks.
#pragma once

#include <cstdint>

#include "engine/base/status.h"

namespace eagle::server {

constexpr std::uint32_t protocol_min = 1;
constexpr std::uint32_t protocol_max = 1;

// The highest version that both speak, of a client that speaks `lowest` to `highest`. PROTOCOL_MISMATCH names
// both.
StatusOr<std::uint32_t> common_protocol(std::uint32_t lowest, std::uint32_t highest);

}  // namespace eagle::server
