// A text that one process hands to another: a sealed memfd, which nobody changes any more.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace eagle::server {

// Closed on exec. SYSTEM.
StatusOr<UniqueFd> hand_over(std::string_view text, std::string_view label);
// What such a descriptor holds; it stays the caller's. SYSTEM; BAD_MESSAGE for more than `most` bytes.
StatusOr<std::string> handed(int fd, std::size_t most);

}  // namespace eagle::server
