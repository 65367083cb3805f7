// Compiled code as bytes: what the helper answers with, what a cache keeps, what is mapped.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace eagle::codegen {

// What is known about an image beside its bytes.
struct CodeHeader {
  std::uint64_t image_bytes = 0;
  std::uint64_t entry_offset = 0;  // below image_bytes
  std::uint32_t lanes = 1;
  std::string cpu;  // LLVM's name of what it was compiled for
};

// A memfd that holds exactly these bytes and that nobody can change any more. SYSTEM, OUT_OF_MEMORY.
StatusOr<UniqueFd> sealed_image(const void* bytes, std::uint64_t count);

// Ok when the descriptor is a memfd of `header.image_bytes` bytes sealed against writing and resizing, and
// the entry lies inside. COMPILE_FAILED says what is wrong.
Status check_image(int fd, const CodeHeader& header);

}  // namespace eagle::codegen
