// Memory of the system for scratch planes: zeroed, page-aligned, made page by page when first touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/base/status.h"

namespace eagle::run {

// bytes > 0; freed with the last owner. OUT_OF_MEMORY.
StatusOr<std::shared_ptr<std::byte>> system_memory(std::uint64_t bytes);

}  // namespace eagle::run
