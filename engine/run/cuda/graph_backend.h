// The graph of a description on a device, for run/device_backend.h.
#pragma once

#include <memory>
#include <vector>

#include "engine/base/status.h"
#include "engine/graph/graph.h"
#include "engine/run/cuda/device.h"
#include "engine/run/cuda/device_program.h"
#include "engine/run/cuda/devices.h"
#include "engine/run/device_backend.h"

namespace eagle::run::cuda {

// The planes of a description, on one GPU.
struct PlanesOnDevice {
  std::shared_ptr<const Devices::Unit> unit;
  // By plane of the description; null: in memory of the host, or scratch.
  std::vector<std::shared_ptr<const DeviceMemory>> memory;
  Account account = {};  // pays for what the graph makes there for itself
  // Of callables that belong to this process.
  DeviceWorks works = {};
};

// MIXED_DEVICES where a node that the device runs touches memory of the host, by the names of the node, of
// that plane and of one that lies on the device.
Status check_on_device(const graph::Graph& graph, const PlanesOnDevice& planes);

// As DeviceGraph::build, for a graph that `check_on_device` accepts.
StatusOr<std::unique_ptr<DeviceBackend>> build_on_device(const graph::Graph& graph,
                                                         const PlanesOnDevice& planes);

// Puts what `build_on_device` made over other planes, as DeviceGraph::rebind: true, and `backend` is `graph`
// over `planes` until it is told `undo_rebind`; false, and it must be built anew.
StatusOr<bool> rebind_on_device(DeviceBackend& backend, const graph::Graph& graph,
                                const PlanesOnDevice& planes);

}  // namespace eagle::run::cuda
