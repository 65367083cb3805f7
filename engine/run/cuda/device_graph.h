// DeviceGraph: a graph of kernels as one CUDA graph, over planes of its own on one device.
//
// Its nodes are the launches, and their parents are the derived edges, so the device may overlap whatever is
// independent. Built node by node, not by capture: what runs is what the edges say. It is for one caller at a
// time, and takes part in nothing that other graphs of the device do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/codegen/device_abi.h"
#include "engine/graph/graph.h"
#include "engine/run/cuda/device.h"
#include "engine/run/cuda/device_modules.h"

namespace eagle::run::cuda {

class DeviceGraph {
public:
  // `parents` by leaf: parents_of(edges). BAD_VALUE names a node that graphs of a device do not have (yet):
  // all but launches of kernels whose samples share nothing. GRAPH_LIMIT beyond `most_nodes`. SYSTEM where
  // the driver has no graphs; OUT_OF_MEMORY.
  static StatusOr<DeviceGraph> build(DeviceModules& modules, const graph::Graph& graph,
                                     const std::vector<std::vector<std::uint32_t>>& parents);
  static constexpr std::size_t most_nodes = 10'000;
  DeviceGraph(DeviceGraph&& other) noexcept;
  DeviceGraph& operator=(DeviceGraph&&) = delete;
  ~DeviceGraph();

  // The bytes of a plane of the description, all of them. Not while a launch is under way.
  Status write(std::uint32_t plane, std::span<const std::byte> from) const;
  Status read(std::uint32_t plane, std::span<std::byte> to) const;
  // So many replays, one after the other. Returns before they are done; `wait` says how they went, and what
  // they counted together.
  Status launch(std::int64_t count);
  StatusOr<codegen::DeviceCounts> wait();
  // The number of a Param from the next launch on, as bits of its type: of argument `argument` of leaf
  // `leaf`.
  Status set_param(std::uint32_t leaf, std::uint32_t argument, std::uint64_t bits);

private:
  struct Node {
    api::GraphNode handle = nullptr;
    api::Function function = nullptr;
    unsigned blocks = 1;
    unsigned threads = 1;
    std::vector<std::uint64_t> parameter;
    const kernel::Kernel* kernel = nullptr;  // kept alive by `kernels_`
  };
  DeviceGraph() = default;
  Status make_planes(const graph::Graph& graph);
  Status load_kernels(DeviceModules& modules, const graph::Graph& graph);
  Status add(const graph::Node& node, std::span<const std::uint32_t> parents);
  [[nodiscard]] std::vector<std::uint64_t> parameter_of(const graph::KernelLaunch& launch) const;
  static api::KernelNodeParams params_of(Node& node, void** parameter);

  std::shared_ptr<const Device> device_;
  std::vector<std::shared_ptr<const kernel::Kernel>> kernels_;
  std::vector<std::shared_ptr<const DeviceModule>> modules_;  // by kernel
  std::vector<DeviceMemory> planes_;
  DeviceMemory beside_;  // steps taken, counts, the cancel flag
  DeviceStream stream_;
  std::vector<Node> nodes_;
  api::Graph graph_ = nullptr;
  api::GraphExec exec_ = nullptr;
};

}  // namespace eagle::run::cuda
