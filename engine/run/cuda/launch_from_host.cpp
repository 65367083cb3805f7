#include "engine/run/cuda/launch_from_host.h"

#include <cstddef>
#include <string>
#include <vector>

#include "engine/codegen/device_arch.h"
#include "engine/codegen/ptx.h"
#include "engine/run/cuda/device_launch.h"

namespace eagle::run::cuda {
namespace {

// What every launch needs beside its planes.
struct Block {
  std::int64_t first_step = 0;
  codegen::DeviceCounts counts;
  std::int64_t cancel = 0;
};

}  // namespace

StatusOr<codegen::DeviceCounts> launch_from_host(const std::shared_ptr<const Device>& device,
                                                 codegen::Compiler& compiler, const kernel::Kernel& kernel,
                                                 std::span<const HostPlane> planes, std::int64_t samples,
                                                 std::int64_t max_steps, const LaunchPosition& position) {
  if (kernel.shares()) {
    return Status(Reason::bad_value, "kernel '" + kernel.name +
                                         "' adds up or reduces over its samples; expected one whose samples "
                                         "have nothing in common");
  }
  const DeviceInfo& info = device->info();
  EAGLE_ASSIGN_OR_RETURN(const codegen::DeviceArch arch, codegen::device_arch_for(info.major, info.minor));
  EAGLE_ASSIGN_OR_RETURN(const std::string ptx, codegen::ptx_of(compiler, kernel, arch.name));
  EAGLE_ASSIGN_OR_RETURN(const DeviceModule module,
                         DeviceModule::load(device, ptx, codegen::device_entry_name));
  std::vector<DeviceMemory> memory;
  std::vector<DeviceArgument> arguments;
  for (const HostPlane& plane : planes) {
    EAGLE_ASSIGN_OR_RETURN(DeviceMemory there, DeviceMemory::create(device, plane.bytes.size()));
    EAGLE_RETURN_IF_ERROR(there.write(plane.bytes));
    arguments.push_back({there.address() + static_cast<api::DevicePointer>(plane.offset),
                         plane.component_stride, plane.length, plane.bits});
    memory.push_back(std::move(there));
  }
  Block block;
  block.first_step = position.first_step;
  EAGLE_ASSIGN_OR_RETURN(const DeviceMemory beside, DeviceMemory::create(device, sizeof block));
  EAGLE_RETURN_IF_ERROR(beside.write(std::as_bytes(std::span(&block, 1))));

  codegen::DeviceCall call;
  call.end = samples;
  call.max_steps = max_steps;
  call.first_sample = position.first_sample;
  call.total_samples = position.total_samples;
  call.first_step = beside.address() + offsetof(Block, first_step);
  call.counts = beside.address() + offsetof(Block, counts);
  call.cancel = beside.address() + offsetof(Block, cancel);
  const std::vector<std::uint64_t> parameter = device_parameter(kernel, call, arguments, {});
  const Grid grid = grid_for(samples);
  EAGLE_ASSIGN_OR_RETURN(const DeviceStream stream, DeviceStream::create(device));
  EAGLE_RETURN_IF_ERROR(stream.launch(module, grid.blocks, grid.threads, parameter));
  EAGLE_RETURN_IF_ERROR(stream.wait());
  EAGLE_RETURN_IF_ERROR(beside.read(std::as_writable_bytes(std::span(&block, 1))));
  for (std::size_t a = 0; a < planes.size(); ++a) EAGLE_RETURN_IF_ERROR(memory[a].read(planes[a].bytes));
  return block.counts;
}

}  // namespace eagle::run::cuda
