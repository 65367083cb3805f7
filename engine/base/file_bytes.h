// Whole reads and writes of files, at an offset.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace eagle {

// SYSTEM.
Status write_at(int fd, std::string_view bytes, std::uint64_t offset);
// BAD_MESSAGE: the file ends before. SYSTEM.
StatusOr<std::string> read_at(int fd, std::uint64_t offset, std::uint64_t bytes);

}  // namespace eagle
