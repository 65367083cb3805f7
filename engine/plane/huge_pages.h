// Huge pages: asked of the system, and whether it gave some of shared memory.
//
// The system decides (its setting for shared memory, how free memory lies), and says no to nobody: pages are
// then of the usual size. So what was had is looked at, and told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace eagle::plane {

struct HugePages {
  std::uint64_t bytes = 0;  // that lie in huge pages
  std::string why;          // why not all that could, with the cure; empty: all of them
};

// Before the pages are there. Memory of which no huge page is whole stays as it is.
void ask_for_huge_pages(std::byte* data, std::uint64_t bytes);
// Of a mapping that begins at `data`, whose pages are there. Takes as long as looking through all mappings of
// the process before it.
HugePages huge_pages_of(const std::byte* data, std::uint64_t bytes);

}  // namespace eagle::plane
