#include "engine/run/cuda/device_exec.h"

#include <utility>

namespace eagle::run::cuda {
namespace {

// `parameter` holds the address of the words for as long as the result is used.
api::KernelNodeParams params_of(const DeviceNode& node, void** parameter) {
  *parameter = const_cast<std::uint64_t*>(node.words.data());
  api::KernelNodeParams params;
  params.function = node.module->function();
  params.grid_x = node.grid.blocks;
  params.block_x = node.grid.threads;
  params.parameters = parameter;
  return params;
}

}  // namespace

StatusOr<DeviceExec> DeviceExec::create(std::shared_ptr<const Device> device) {
  DeviceExec made;
  made.device_ = std::move(device);
  EAGLE_RETURN_IF_ERROR(made.device_->run(
      "cuGraphCreate", [&](const api::Functions& call) { return call.cuGraphCreate(&made.graph_, 0); }));
  return made;
}

DeviceExec::DeviceExec(DeviceExec&& other) noexcept
    : device_(std::move(other.device_)),
      graph_(std::exchange(other.graph_, nullptr)),
      exec_(std::exchange(other.exec_, nullptr)),
      prepared_(std::exchange(other.prepared_, nullptr)) {}

DeviceExec::~DeviceExec() {
  if (graph_ == nullptr) return;
  device_->free("cuGraphDestroy", [&](const api::Functions& call) {
    if (exec_ != nullptr) call.cuGraphExecDestroy(exec_);
    if (prepared_ != nullptr) call.cuGraphExecDestroy(prepared_);
    return call.cuGraphDestroy(graph_);
  });
}

StatusOr<api::GraphNode> DeviceExec::add(api::Graph into, const DeviceNode& node,
                                         std::span<const api::GraphNode> parents) const {
  void* parameter = nullptr;
  const api::KernelNodeParams params = params_of(node, &parameter);
  api::GraphNode handle = nullptr;
  EAGLE_RETURN_IF_ERROR(device_->run("cuGraphAddKernelNode", [&](const api::Functions& call) {
    return call.cuGraphAddKernelNode(&handle, into, parents.data(), parents.size(), &params);
  }));
  return handle;
}

StatusOr<api::GraphNode> DeviceExec::add(api::Graph into, const CapturedGraph& graph,
                                         std::span<const api::GraphNode> parents) const {
  api::GraphNode handle = nullptr;
  EAGLE_RETURN_IF_ERROR(device_->run("cuGraphAddChildGraphNode", [&](const api::Functions& call) {
    return call.cuGraphAddChildGraphNode(&handle, into, parents.data(), parents.size(), graph.graph());
  }));
  return handle;
}

StatusOr<std::uint64_t> DeviceExec::conditional(api::Graph into) const {
  std::uint64_t handle = 0;
  EAGLE_RETURN_IF_ERROR(device_->run("cuGraphConditionalHandleCreate", [&](const api::Functions& call) {
    return call.cuGraphConditionalHandleCreate(&handle, into, device_->context(), 0, 0);
  }));
  return handle;
}

StatusOr<api::GraphNode> DeviceExec::add(api::Graph into, int kind, std::uint64_t handle,
                                         std::span<const api::GraphNode> parents, api::Graph& body) const {
  api::ConditionalNodeParams params;
  params.handle = handle;
  params.kind = kind;
  params.context = device_->context();
  api::GraphNode node = nullptr;
  EAGLE_RETURN_IF_ERROR(device_->run("cuGraphAddNode", [&](const api::Functions& call) {
    return call.cuGraphAddNode(&node, into, parents.data(), nullptr, parents.size(), &params);
  }));
  body = params.bodies[0];
  return node;
}

Status DeviceExec::instantiate() {
  EAGLE_RETURN_IF_ERROR(prepare());
  exchange();
  discard();
  return {};
}

Status DeviceExec::prepare() {
  discard();
  bool alone = false;  // it cannot be had beside the other one
  const auto make = [&] {
    return device_->run("cuGraphInstantiateWithFlags", [&](const api::Functions& call) {
      const api::Result made = call.cuGraphInstantiateWithFlags(&prepared_, graph_, 0);
      if (made != api::success) prepared_ = nullptr;
      alone = made != api::success && made != api::out_of_memory;
      return made;
    });
  };
  const Status made = make();
  if (!alone || exec_ == nullptr || device_->lost()) return made;
  // Nobody promises that a graph with conditionals is executable twice.
  drop();
  return make();
}

void DeviceExec::discard() { destroy(prepared_); }
void DeviceExec::drop() { destroy(exec_); }

void DeviceExec::destroy(api::GraphExec& exec) const {
  if (exec == nullptr) return;
  device_->free("cuGraphExecDestroy", [&](const api::Functions& call) {
    return call.cuGraphExecDestroy(std::exchange(exec, nullptr));
  });
}

Status DeviceExec::change(api::GraphNode handle, const DeviceNode& node, bool in_body) {
  void* parameter = nullptr;
  const api::KernelNodeParams params = params_of(node, &parameter);
  if (exec_ != nullptr && !in_body) {
    EAGLE_RETURN_IF_ERROR(device_->run("cuGraphExecKernelNodeSetParams", [&](const api::Functions& call) {
      return call.cuGraphExecKernelNodeSetParams(exec_, handle, &params);
    }));
  }
  // What is instantiated later has it, too.
  return device_->run("cuGraphKernelNodeSetParams", [&](const api::Functions& call) {
    return call.cuGraphKernelNodeSetParams(handle, &params);
  });
}

Status DeviceExec::launch(const DeviceStream& stream) const {
  return device_->run("cuGraphLaunch",
                      [&](const api::Functions& call) { return call.cuGraphLaunch(exec_, stream.handle()); });
}

}  // namespace eagle::run::cuda
