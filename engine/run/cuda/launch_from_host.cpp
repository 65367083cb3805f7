#include "engine/run/cuda/launch_from_host.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/run/cuda/device_nodes.h"

namespace eagle::run::cuda {
namespace {

graph::KernelLaunch described(std::span<const HostPlane> planes, const kernel::Kernel& kernel,
                              std::int64_t samples) {
  graph::KernelLaunch launch;
  launch.samples = samples;
  for (std::uint32_t a = 0; a < planes.size(); ++a) {
    graph::Bound& bound = launch.arguments.emplace_back();
    bound.bits = planes[a].bits;
    bound.layout = {planes[a].length, planes[a].component_stride};
    if (!kernel::has_plane(kernel.arguments[a].role)) continue;
    bound.view.emplace();
    bound.view->plane = a;
    bound.view->offset = planes[a].offset;
  }
  return launch;
}

void move_to(const LaunchPosition& position, std::vector<DeviceNode>& chain) {
  for (DeviceNode& node : chain) {
    if (node.kernel == nullptr) continue;
    const auto set = [&](std::size_t offset, std::int64_t number) {
      node.words[offset / 8] = static_cast<std::uint64_t>(number);
    };
    set(offsetof(codegen::DeviceCall, first_sample), position.first_sample);
    set(offsetof(codegen::DeviceCall, total_samples), position.total_samples);
  }
}

}  // namespace

StatusOr<codegen::DeviceCounts> launch_from_host(DeviceModules& modules, const kernel::Kernel& kernel,
                                                 std::span<const HostPlane> planes, std::int64_t samples,
                                                 std::int64_t max_steps, const LaunchPosition& position) {
  const std::shared_ptr<const Device>& device = modules.device();
  std::vector<DeviceMemory> memory;
  std::vector<api::DevicePointer> addresses;
  for (const HostPlane& plane : planes) {
    EAGLE_ASSIGN_OR_RETURN(DeviceMemory there, DeviceMemory::create(device, plane.bytes.size()));
    EAGLE_RETURN_IF_ERROR(there.write(plane.bytes));
    addresses.push_back(there.address());
    memory.push_back(std::move(there));
  }
  Beside block;
  block.first_step = position.first_step;
  EAGLE_ASSIGN_OR_RETURN(const DeviceMemory beside, DeviceMemory::create(device, sizeof block));
  EAGLE_RETURN_IF_ERROR(beside.write(std::as_bytes(std::span(&block, 1))));

  // Where samples share, a step of all comes before the next step of any.
  const std::int64_t launches = kernel.shares() ? max_steps : 1;
  DeviceNodes nodes(modules, beside.address());
  EAGLE_ASSIGN_OR_RETURN(
      std::vector<DeviceNode> chain,
      nodes.launch(std::make_shared<const kernel::Kernel>(kernel), described(planes, kernel, samples),
                   max_steps / std::max<std::int64_t>(launches, 1)));
  const std::vector<DeviceMemory> scratch = nodes.take_scratch();
  move_to(position, chain);
  EAGLE_ASSIGN_OR_RETURN(const DeviceStream stream, DeviceStream::create(device));
  codegen::DeviceCounts counts;
  for (std::int64_t step = 0; step < launches; ++step) {
    for (DeviceNode& node : chain) {
      node.place(addresses);
      EAGLE_RETURN_IF_ERROR(stream.launch(*node.module, node.grid.blocks, node.grid.threads, node.words));
    }
    EAGLE_RETURN_IF_ERROR(stream.wait());
    EAGLE_RETURN_IF_ERROR(beside.read(std::as_writable_bytes(std::span(&block, 1))));
    if (block.counts.steps > 0) counts.steps = step + block.counts.steps;
    ++block.first_step;
    block.counts.steps = 0;
    EAGLE_RETURN_IF_ERROR(beside.write(std::as_bytes(std::span(&block, 1))));
    // Once all have finished there is no next step.
    if (step + 1 == launches || kernel.terminated_argument() < 0) continue;
    const auto mask = static_cast<std::size_t>(kernel.terminated_argument());
    std::vector<std::byte> done(static_cast<std::size_t>(samples));
    EAGLE_RETURN_IF_ERROR(memory[mask].read(done, static_cast<std::uint64_t>(planes[mask].offset)));
    if (std::find(done.begin(), done.end(), std::byte{0}) == done.end()) break;
  }
  const std::int64_t steps = counts.steps;
  counts = block.counts;
  counts.steps = steps;
  for (std::size_t a = 0; a < planes.size(); ++a) EAGLE_RETURN_IF_ERROR(memory[a].read(planes[a].bytes));
  return counts;
}

}  // namespace eagle::run::cuda
