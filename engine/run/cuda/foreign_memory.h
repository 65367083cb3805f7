// Memory of a GPU that somebody else in this process has made: CuPy, torch, a program itself.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/base/status.h"
#include "engine/run/cuda/device_sharing.h"

namespace eagle::run::cuda {

struct ForeignMemory {
  std::shared_ptr<const Driver> driver;
  DeviceInfo gpu;  // that has it
  api::DevicePointer address = 0;
  std::uint64_t bytes = 0;
  api::DevicePointer base = 0;   // of the allocation that they lie in
  std::uint64_t allocation = 0;  // bytes of it
};

// Asks the driver where these bytes are. BAD_VALUE for an address that is none of a GPU's memory, and for
// bytes that reach out of their allocation; SYSTEM where there is no driver.
StatusOr<ForeignMemory> foreign_memory(api::DevicePointer address, std::uint64_t bytes);

// For another process on the same host, which then sees all of the allocation. BAD_VALUE with the cure for
// memory that the driver hands to nobody: of a stream-ordered pool, mapped by hand, managed.
StatusOr<DeviceHandle> handle_of(const ForeignMemory& memory);

// For this process, in the device's context. BAD_VALUE for memory of another context of that GPU.
StatusOr<DeviceMemory> borrowed(std::shared_ptr<const Device> device, const ForeignMemory& memory,
                                std::shared_ptr<const void> owner);

}  // namespace eagle::run::cuda
