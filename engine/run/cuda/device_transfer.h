// Elements of a view of memory on a device, packed in row-major order, from and to the host.
//
// Pieces that lie alike go by one copy of the driver's; views of many pieces that do not take one each. They
// wait until they are done; work of streams is not waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/status.h"
#include "engine/plane/packed.h"
#include "engine/run/cuda/device.h"

namespace eagle::run::cuda {

// Bytes [first, first + size) of the packed form, of a view that lies within the memory.
Status read_packed(const DeviceMemory& memory, const plane::Packed& packed, std::uint64_t first,
                   std::span<std::byte> into);
Status write_packed(const DeviceMemory& memory, const plane::Packed& packed, std::uint64_t first,
                    std::span<const std::byte> from);

}  // namespace eagle::run::cuda
