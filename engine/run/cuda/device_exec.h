// DeviceExec: a CUDA graph under construction, and then executable.
//
// For one caller at a time.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "engine/base/status.h"
#include "engine/run/cuda/captured_graph.h"
#include "engine/run/cuda/device.h"
#include "engine/run/cuda/device_nodes.h"

namespace eagle::run::cuda {

class DeviceExec {
public:
  static StatusOr<DeviceExec> create(std::shared_ptr<const Device> device);
  DeviceExec(DeviceExec&& other) noexcept;
  DeviceExec& operator=(DeviceExec&&) = delete;
  ~DeviceExec();

  [[nodiscard]] api::Graph graph() const { return graph_; }
  // A node of `into`: this graph, or the body of a conditional in it.
  StatusOr<api::GraphNode> add(api::Graph into, const DeviceNode& node,
                               std::span<const api::GraphNode> parents) const;
  // A copy of the graph as one node.
  StatusOr<api::GraphNode> add(api::Graph into, const CapturedGraph& graph,
                               std::span<const api::GraphNode> parents) const;
  // A conditional node (api::conditional_if or _while) with the handle that `conditional` made, and its body.
  StatusOr<std::uint64_t> conditional(api::Graph into) const;
  StatusOr<api::GraphNode> add(api::Graph into, int kind, std::uint64_t handle,
                               std::span<const api::GraphNode> parents, api::Graph& body) const;
  // After the last node, and again after a change of a node in a body; not while it is under way. In two
  // steps: where `prepare` fails, what was executable still is, if the driver lets both be (`executable`).
  Status instantiate();
  Status prepare();
  // What was prepared is what is launched, and what was is kept in its place, if it is there still: until
  // `discard`, and to be exchanged again.
  void exchange() { std::swap(exec_, prepared_); }
  void discard();  // what is not launched
  [[nodiscard]] bool executable() const { return exec_ != nullptr; }
  // What is executable is not as it should be; `instantiate` makes it from the nodes.
  void drop();
  // The node runs with these words from the next launch on; those under way have copies of theirs. Of a node
  // in a body: from the next `instantiate` on.
  Status change(api::GraphNode handle, const DeviceNode& node, bool in_body);
  // Returns before it is done.
  Status launch(const DeviceStream& stream) const;

private:
  DeviceExec() = default;
  std::shared_ptr<const Device> device_;
  api::Graph graph_ = nullptr;
  void destroy(api::GraphExec& exec) const;
  api::GraphExec exec_ = nullptr;
  api::GraphExec prepared_ = nullptr;
};

}  // namespace eagle::run::cuda
