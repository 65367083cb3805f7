// How a process hands memory of a GPU to another one on the same host, and how that opens it.
//
// By descriptor where the driver can (virtual memory management): the memory then lives as long as anybody
// has it. Else by 64 bytes (cuIpc): whoever made the memory keeps it until nobody has it open, because what
// an importer sees of memory that was freed is anybody's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "engine/run/cuda/device.h"

namespace eagle::run::cuda {

struct DeviceHandle {
  std::string uuid;  // of the GPU, which ordinals of two processes need not agree on
  UniqueFd descriptor;
  std::string ipc;               // 64 bytes, where there is no descriptor
  std::uint64_t allocation = 0;  // bytes of what is opened
  std::uint64_t offset = 0;      // of the plane in it
  std::uint64_t bytes = 0;       // of the plane
};

// "cuda_vmm_fd", "cuda_ipc", "copy": as a plane's transport is called.
std::string_view transport_of(DeviceMemory::Sharing sharing);

// What `status` says, with what the device has where it says that this is not enough.
Status out_of_memory_in(const Device& device, std::uint64_t bytes, const Status& status);

// cuMemAlloc may put small allocations into one piece of memory, which an importer then sees whole: NVIDIA
// says to share multiples of this.
inline constexpr std::uint64_t share_granularity = std::uint64_t{2} << 20;
// What `create_shared` takes for so many bytes where pieces are as large as that, as they are on every GPU so
// far; saturates.
std::uint64_t shared_bytes_of(std::uint64_t bytes);

}  // namespace eagle::run::cuda
