#include "engine/run/cuda/device_graph.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>

#include "engine/graph/edges.h"
#include "engine/kernel/names.h"
#include "engine/run/cuda/device_launch.h"

namespace eagle::run::cuda {
namespace {

// What every launch needs beside its planes.
struct Beside {
  std::int64_t first_step = 0;
  codegen::DeviceCounts counts;
  std::int64_t cancel = 0;
};

std::string_view kind_of(const graph::Node& node) {
  constexpr std::string_view names[] = {"a launch",    "a host node", "a conditional",
                                        "a reduction", "a copy",      "a group"};
  return names[node.kind.index()];
}

}  // namespace

StatusOr<DeviceGraph> DeviceGraph::build(DeviceModules& modules, const graph::Graph& graph,
                                         const std::vector<std::vector<std::uint32_t>>& parents) {
  EAGLE_RETURN_IF_ERROR(modules.device()->driver().graphs());
  const std::vector<graph::Leaf> leaves = graph::leaves(graph);
  if (leaves.size() > most_nodes) {
    return Status(Reason::graph_limit, "the graph has " + std::to_string(leaves.size()) +
                                           " nodes; expected at most " + std::to_string(most_nodes) +
                                           " of a graph on a GPU");
  }
  DeviceGraph made;
  made.device_ = modules.device();
  EAGLE_RETURN_IF_ERROR(made.load_kernels(modules, graph));
  EAGLE_RETURN_IF_ERROR(made.make_planes(graph));
  EAGLE_ASSIGN_OR_RETURN(made.stream_, DeviceStream::create(made.device_));
  EAGLE_RETURN_IF_ERROR(made.device_->run(
      "cuGraphCreate", [&](const api::Functions& call) { return call.cuGraphCreate(&made.graph_, 0); }));
  made.nodes_.reserve(leaves.size());  // nodes are pointed into
  for (std::size_t i = 0; i < leaves.size(); ++i)
    EAGLE_RETURN_IF_ERROR(made.add(*leaves[i].node, parents.at(i)));
  EAGLE_RETURN_IF_ERROR(made.device_->run("cuGraphInstantiateWithFlags", [&](const api::Functions& call) {
    return call.cuGraphInstantiateWithFlags(&made.exec_, made.graph_, 0);
  }));
  return made;
}

DeviceGraph::DeviceGraph(DeviceGraph&& other) noexcept
    : device_(std::move(other.device_)),
      kernels_(std::move(other.kernels_)),
      modules_(std::move(other.modules_)),
      planes_(std::move(other.planes_)),
      beside_(std::move(other.beside_)),
      stream_(std::move(other.stream_)),
      nodes_(std::move(other.nodes_)),
      graph_(std::exchange(other.graph_, nullptr)),
      exec_(std::exchange(other.exec_, nullptr)) {}

DeviceGraph::~DeviceGraph() {
  if (graph_ == nullptr) return;
  (void)stream_.wait();  // what is under way still looks at the planes
  (void)device_->run("cuGraphDestroy", [&](const api::Functions& call) {
    if (exec_ != nullptr) call.cuGraphExecDestroy(exec_);
    return call.cuGraphDestroy(graph_);
  });
}

Status DeviceGraph::load_kernels(DeviceModules& modules, const graph::Graph& graph) {
  kernels_ = graph.kernels;
  for (const auto& kernel : kernels_) {
    if (kernel->shares()) {
      return {Reason::bad_value, "kernel " + kernel::quote_name(kernel->name) +
                                     " adds up or reduces over its samples; expected one whose samples have "
                                     "nothing in common, in a graph on a GPU"};
    }
    EAGLE_ASSIGN_OR_RETURN(auto module, modules.of(*kernel));
    modules_.push_back(std::move(module));
  }
  return {};
}

Status DeviceGraph::make_planes(const graph::Graph& graph) {
  for (const graph::Plane& plane : graph.planes) {
    EAGLE_ASSIGN_OR_RETURN(DeviceMemory memory, DeviceMemory::create(device_, plane.bytes));
    EAGLE_RETURN_IF_ERROR(memory.fill(0));
    planes_.push_back(std::move(memory));
  }
  EAGLE_ASSIGN_OR_RETURN(beside_, DeviceMemory::create(device_, sizeof(Beside)));
  return beside_.fill(0);
}

std::vector<std::uint64_t> DeviceGraph::parameter_of(const graph::KernelLaunch& launch) const {
  const kernel::Kernel& kernel = *kernels_[launch.kernel];
  std::vector<DeviceArgument> arguments;
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const graph::Bound& bound = launch.arguments[i];
    DeviceArgument argument{0, bound.layout.component_stride, bound.layout.samples, bound.bits};
    // Its elements are aligned: plane::layout has seen to it, and memory of a device begins at a multiple of
    // 256.
    if (bound.view) {
      argument.address =
          planes_[bound.view->plane].address() + static_cast<api::DevicePointer>(bound.view->offset);
    }
    arguments.push_back(argument);
  }
  codegen::DeviceCall call;
  call.end = launch.samples;
  call.total_samples = launch.samples;
  call.first_step = beside_.address() + offsetof(Beside, first_step);
  call.counts = beside_.address() + offsetof(Beside, counts);
  call.cancel = beside_.address() + offsetof(Beside, cancel);
  return device_parameter(kernel, call, arguments, {});
}

api::KernelNodeParams DeviceGraph::params_of(Node& node, void** parameter) {
  *parameter = node.parameter.data();
  api::KernelNodeParams params;
  params.function = node.function;
  params.grid_x = node.blocks;
  params.block_x = node.threads;
  params.parameters = parameter;
  return params;
}

Status DeviceGraph::add(const graph::Node& node, std::span<const std::uint32_t> parents) {
  const auto* launch = std::get_if<graph::KernelLaunch>(&node.kind);
  if (launch == nullptr) {
    return {Reason::bad_value, "node " + kernel::quote_name(node.label) + " is " +
                                   std::string(kind_of(node)) +
                                   "; expected launches of kernels alone, in a graph on a GPU"};
  }
  Node& made = nodes_.emplace_back();
  made.parameter = parameter_of(*launch);
  made.kernel = kernels_[launch->kernel].get();
  made.function = modules_[launch->kernel]->function();
  const Grid grid = grid_for(launch->samples);
  made.blocks = grid.blocks;
  made.threads = grid.threads;
  std::vector<api::GraphNode> handles;
  for (const std::uint32_t parent : parents) handles.push_back(nodes_[parent].handle);
  void* parameter = nullptr;
  const api::KernelNodeParams params = params_of(made, &parameter);
  return device_->run("cuGraphAddKernelNode", [&](const api::Functions& call) {
    return call.cuGraphAddKernelNode(&made.handle, graph_, handles.data(), handles.size(), &params);
  });
}

Status DeviceGraph::write(std::uint32_t plane, std::span<const std::byte> from) const {
  return planes_.at(plane).write(from);
}
Status DeviceGraph::read(std::uint32_t plane, std::span<std::byte> to) const {
  return planes_.at(plane).read(to);
}

Status DeviceGraph::launch(std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    EAGLE_RETURN_IF_ERROR(device_->run("cuGraphLaunch", [&](const api::Functions& call) {
      return call.cuGraphLaunch(exec_, stream_.handle());
    }));
  }
  return {};
}

StatusOr<codegen::DeviceCounts> DeviceGraph::wait() {
  EAGLE_RETURN_IF_ERROR(stream_.wait());
  Beside beside;
  EAGLE_RETURN_IF_ERROR(beside_.read(std::as_writable_bytes(std::span(&beside, 1))));
  EAGLE_RETURN_IF_ERROR(beside_.fill(0));
  return beside.counts;
}

Status DeviceGraph::set_param(std::uint32_t leaf, std::uint32_t argument, std::uint64_t bits) {
  if (leaf >= nodes_.size() || argument >= nodes_[leaf].kernel->arguments.size() ||
      nodes_[leaf].kernel->arguments[argument].role != kernel::Role::param) {
    return {Reason::bad_value, "argument " + std::to_string(argument) + " of node " + std::to_string(leaf) +
                                   " is no Param of this graph"};
  }
  Node& node = nodes_[leaf];
  node.parameter[codegen::device_base_word(argument)] = bits;
  void* parameter = nullptr;
  const api::KernelNodeParams params = params_of(node, &parameter);
  return device_->run("cuGraphExecKernelNodeSetParams", [&](const api::Functions& call) {
    return call.cuGraphExecKernelNodeSetParams(exec_, node.handle, &params);
  });
}

}  // namespace eagle::run::cuda
