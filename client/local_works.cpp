#include "client/local_works.h"

#include <span>
#include <utility>
#include <variant>

#include "engine/kernel/names.h"

namespace eagle {
namespace {

using run::cuda::CapturedGraph;

// The client's nodes, those of bodies too.
void list_host_nodes(const std::vector<graph::Stage>& stages, std::vector<const graph::Node*>& nodes) {
  for (const graph::Stage& stage : stages) {
    graph::for_each_leaf(std::span<const graph::Branch>(stage.branches), [&](const graph::Node& node) {
      if (graph::as<graph::HostNode>(node) != nullptr) nodes.push_back(&node);
      if (const auto* conditional = graph::as<graph::Conditional>(node))
        list_host_nodes(conditional->body, nodes);
    });
  }
}

std::string named(const std::string& label) { return "node " + kernel::quote_name(label); }

}  // namespace

StatusOr<LocalWorks> LocalWorks::prepare(const graph::Graph& graph, const GpuWorks& works,
                                         const std::shared_ptr<const run::cuda::Device>& device) {
  LocalWorks made;
  std::vector<const graph::Node*> nodes;
  list_host_nodes(graph.stages, nodes);
  for (const graph::Node* node : nodes) {
    const std::uint32_t call = graph::as<graph::HostNode>(*node)->call;
    if (call < works.size() && works[call] != nullptr)
      EAGLE_RETURN_IF_ERROR(made.add(call, named(node->label), works[call], device));
  }
  return made;
}

StatusOr<LocalWorks> LocalWorks::prepare(const step::Model& model, const GpuWorks& works,
                                         const std::shared_ptr<const run::cuda::Device>& device) {
  LocalWorks made;
  made.of_run_ = true;
  for (std::size_t i = 0; i < model.host_steps.size(); ++i) {
    const step::HostStep& step = model.host_steps[i];
    const std::shared_ptr<const GpuWork> work = step.call < works.size() ? works[step.call] : nullptr;
    if (work == nullptr) continue;
    const std::string where =
        work->name.empty() ? "part " + std::to_string(step.before + i) + " of the step" : named(work->name);
    EAGLE_RETURN_IF_ERROR(made.add(step.call, where, work, device));
  }
  return made;
}

Status LocalWorks::add(std::uint32_t call, const std::string& where,
                       const std::shared_ptr<const GpuWork>& work,
                       const std::shared_ptr<const run::cuda::Device>& device) {
  run::cuda::DeviceWork& on_device = on_device_[call];
  if (work->over) told_.push_back(work);
  if (work->stream) {
    on_device.stream = reinterpret_cast<run::cuda::api::Stream>(*work->stream);
  } else if (work->graph) {
    const std::uint64_t original = work->graph();
    if (original == 0) {
      return {Reason::graph_state, where + ": its owner has no CUDA graph now; capture one, and " +
                                       (of_run_ ? "run then" : "build then")};
    }
    auto copy = CapturedGraph::copy_of(device, reinterpret_cast<run::cuda::api::Graph>(original));
    if (!copy.ok()) return copy.status().within(where);
    on_device.graph = *copy;
    children_.push_back({where, work, original, *std::move(copy)});
  } else {
    auto captured = CapturedGraph::capture(device, [&](run::cuda::api::Stream stream) {
      return work->enqueue(reinterpret_cast<std::uint64_t>(stream));
    });
    if (!captured.ok()) return captured.status().within(where);
    on_device.graph = *std::move(captured);
  }
  return {};
}

Status LocalWorks::check() const {
  for (const Child& child : children_) {
    const std::uint64_t now = child.work->graph();
    if (now == child.original && !child.copy->original_gone()) continue;
    const std::string was = child.where + ": its owner was " + (now == 0 ? "reset" : "captured again");
    if (of_run_) {
      return {Reason::graph_state,
              was + " within the run, which has what it was at the begin; do that between two runs"};
    }
    return {Reason::graph_state,
            was + " since this graph was built, which has what it was then; " +
                (now == 0 ? "capture it again, and build the graph anew" : "build the graph anew")};
  }
  return {};
}

void LocalWorks::over() const {
  for (const auto& work : told_) work->over();
}

}  // namespace eagle
