// From an object file to an image: one run of bytes that works at any page-aligned address.
//
// Included by the compile helper alone.
#pragma once

#include <llvm/Support/MemoryBufferRef.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/status.h"

namespace eagle::codegen {

struct Image {
  std::vector<std::byte> bytes;  // code and constants; whole pages
  std::uint64_t entry = 0;       // offset of emit.h's entry_name
};

// Lays the sections out and resolves the relocations between them. Refuses (COMPILE_FAILED, naming it)
// any symbol from outside the object and any relocation that would depend on where the image is mapped.
StatusOr<Image> link_image(llvm::MemoryBufferRef object);

}  // namespace eagle::codegen
