// What this client speaks to a daemon.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eagle {

constexpr std::uint32_t protocol_min = 1;
constexpr std::uint32_t protocol_max = 1;
constexpr std::size_t secret_bytes = 32;  // of a session

}  // namespace eagle
