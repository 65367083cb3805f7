// The GPU architectures that kernels are compiled for.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace eagle::codegen {

struct DeviceArch {
  std::string_view name;  // "sm_90"
  int capability = 0;     // 90
  int ptx = 0;            // the first version of PTX that has it: 78 is 7.8, of CUDA 11.8
};

// From the oldest on.
std::span<const DeviceArch> device_archs();
inline constexpr std::string_view default_device_arch = "sm_75";

// BAD_VALUE lists the known ones.
StatusOr<DeviceArch> find_device_arch(std::string_view name);
// The newest that a device of this compute capability runs: its driver compiles PTX of an older one, too.
// BAD_VALUE for a device that is too old.
StatusOr<DeviceArch> device_arch_for(int major, int minor);

}  // namespace eagle::codegen
