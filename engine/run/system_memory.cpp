#include "engine/run/system_memory.h"

#include <sys/mman.h>

#include <string>

namespace eagle::run {

StatusOr<std::shared_ptr<std::byte>> system_memory(std::uint64_t bytes) {
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return Status(Reason::out_of_memory,
                  "the system has no " + std::to_string(bytes) + " bytes for scratch planes");
  }
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(data),
                                    [bytes](std::byte* memory) { ::munmap(memory, bytes); });
}

}  // namespace eagle::run
