#include "engine/run/cuda/device_transfer.h"

namespace eagle::run::cuda {
namespace {

// `host`: where the packed bytes are; `to_device`: which way.
Status transfer(const DeviceMemory& memory, const plane::Packed& packed, std::uint64_t first, std::byte* host,
                std::uint64_t count, bool to_device) {
  if (count == 0) return {};
  const auto copy_all = [&](const api::Functions& call) -> api::Result {
    for (const plane::Packed::Rows& rows : packed.rows(first, count)) {
      const auto at = memory.address() + static_cast<api::DevicePointer>(rows.offset);
      // The driver takes rows that follow each other upwards and apart.
      const bool together = rows.count > 1 && rows.stride >= static_cast<std::int64_t>(rows.bytes);
      api::CopyRows copy;
      copy.bytes = rows.bytes;
      copy.rows = together ? rows.count : 1;
      copy.from_kind = to_device ? api::memory_of_host : api::memory_of_device;
      copy.to_kind = to_device ? api::memory_of_device : api::memory_of_host;
      const auto pitch = static_cast<std::size_t>(together ? rows.stride : copy.bytes);
      copy.from_pitch = to_device ? copy.bytes : pitch;
      copy.to_pitch = to_device ? pitch : copy.bytes;
      for (std::uint64_t row = 0; row < rows.count; row += copy.rows) {
        const api::DevicePointer there = at + row * static_cast<std::uint64_t>(rows.stride);
        api::Result result = api::success;
        if (copy.rows > 1) {
          (to_device ? copy.to_device : copy.from_device) = there;
          copy.from_host = host;
          copy.to_host = host;
          result = call.cuMemcpy2D(&copy);
        } else {
          result = to_device ? call.cuMemcpyHtoD(there, host, copy.bytes)
                             : call.cuMemcpyDtoH(host, there, copy.bytes);
        }
        if (result != api::success) return result;
        host += copy.bytes * copy.rows;
      }
    }
    return api::success;
  };
  const Device& device = *memory.device();
  return to_device ? device.write("copying to the GPU", copy_all)
                   : device.run("copying from the GPU", copy_all);
}

}  // namespace

Status read_packed(const DeviceMemory& memory, const plane::Packed& packed, std::uint64_t first,
                   std::span<std::byte> into) {
  return transfer(memory, packed, first, into.data(), into.size(), false);
}

Status write_packed(const DeviceMemory& memory, const plane::Packed& packed, std::uint64_t first,
                    std::span<const std::byte> from) {
  return transfer(memory, packed, first, const_cast<std::byte*>(from.data()), from.size(), true);
}

}  // namespace eagle::run::cuda
