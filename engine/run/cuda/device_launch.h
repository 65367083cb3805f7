// DeviceLaunch: the parameter of a kernel's launch on a GPU, and how many threads run it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/codegen/device_abi.h"
#include "engine/kernel/ir.h"
#include "engine/run/cuda/driver_api.h"

namespace eagle::run::cuda {

// One argument as the device has it: an address with strides, or the bits of a Param.
struct DeviceArgument {
  api::DevicePointer address = 0;
  std::int64_t component_stride = 0;
  std::int64_t length = 1;  // of a table or accumulator
  std::uint64_t bits = 0;
};

// The words of the parameter (device_abi.h). `call` has all that is not by argument; `note_bases`: two an
// accum_add of a kernel that notes by sample, else empty.
std::vector<std::uint64_t> device_parameter(const kernel::Kernel& kernel, const codegen::DeviceCall& call,
                                            std::span<const DeviceArgument> arguments,
                                            std::span<const api::DevicePointer> note_bases);

struct Grid {
  unsigned blocks = 1;
  unsigned threads = 1;
};
// For so many samples. Each thread runs one, or several one after the other where there are very many.
Grid grid_for(std::int64_t samples);

}  // namespace eagle::run::cuda
