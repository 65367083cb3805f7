// One launch over planes that lie in host memory, on a GPU: the planes go there, the kernel runs, they come
// back.
//
// For checks of what a GPU computes; what it costs is mostly the way there and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/status.h"
#include "engine/codegen/device_abi.h"
#include "engine/kernel/ir.h"
#include "engine/run/cuda/device_modules.h"

namespace eagle::run::cuda {

// The plane of one argument, or the bits of a Param.
struct HostPlane {
  std::span<std::byte> bytes;         // all of it; copied there and back
  std::int64_t offset = 0;            // of the first sample's first component; a multiple of its size
  std::int64_t component_stride = 0;  // bytes; a multiple of the element's size
  std::int64_t length = 1;            // elements of a table or accumulator
  std::uint64_t bits = 0;             // of a Param
};

struct LaunchPosition {
  std::int64_t first_sample = 0;
  std::int64_t total_samples = 0;
  std::int64_t first_step = 0;
};

// Up to `max_steps` steps of each sample; where samples share, a step of all before the next step of any.
// `planes`: one an argument. Reductions are of these samples alone. What compiler and driver say.
StatusOr<codegen::DeviceCounts> launch_from_host(DeviceModules& modules, const kernel::Kernel& kernel,
                                                 std::span<const HostPlane> planes, std::int64_t samples,
                                                 std::int64_t max_steps, const LaunchPosition& position);

}  // namespace eagle::run::cuda
