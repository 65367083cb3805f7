// Frames between an engine and its compile helper: a little-endian uint32 size, that many bytes, and at
// most one descriptor beside them. Over a socket pair that nobody else holds.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace eagle::codegen {

constexpr std::uint32_t max_frame_bytes = 64u << 20;

struct Frame {
  std::string bytes;
  UniqueFd descriptor;  // valid if one came along
};

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

// Both wait until the deadline at most (DEADLINE), for ever without one. CONNECTION_LOST when the other
// side is gone; BAD_MESSAGE for a frame over the size limit.
Status send_frame(int socket, std::string_view bytes, int descriptor, Deadline deadline);
StatusOr<Frame> receive_frame(int socket, Deadline deadline);

}  // namespace eagle::codegen
