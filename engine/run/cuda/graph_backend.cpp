#include "engine/run/cuda/graph_backend.h"

#include <map>
#include <string>
#include <utility>
#include <variant>

#include "engine/graph/edges.h"
#include "engine/kernel/names.h"
#include "engine/run/cuda/device_graph.h"

namespace eagle::run::cuda {
namespace {

// Visits what the nodes that a device runs touch, those of bodies and guards too: `visit(node, view)`.
template <typename Visit>
void for_each_touch(const graph::Graph& graph, const std::vector<graph::Stage>& stages, const Visit& visit) {
  for (const graph::Leaf& leaf : graph::leaves(graph, stages)) {
    if (graph::as<graph::HostNode>(*leaf.node) != nullptr) continue;
    if (const auto* conditional = graph::as<graph::Conditional>(*leaf.node)) {
      visit(*leaf.node, conditional->guard.count);
      if (conditional->guard.baseline) visit(*leaf.node, *conditional->guard.baseline);
      if (conditional->iterations) visit(*leaf.node, *conditional->iterations);
      for_each_touch(graph, conditional->body, visit);
      continue;
    }
    for (const graph::NamedView& view : leaf.touches.reads) visit(*leaf.node, view);
    for (const graph::NamedView& view : leaf.touches.writes) visit(*leaf.node, view);
  }
}

std::string name_of(const graph::Graph& graph, std::uint32_t plane) {
  const std::string& label = graph.planes[plane].label;
  return label.empty() ? "plane " + std::to_string(plane) : "plane " + kernel::quote_name(label);
}

// What callables of the client touch alone has no place on the device, nor has scratch that nobody touches;
// null: scratch.
std::vector<std::shared_ptr<const DeviceMemory>> memory_for(const graph::Graph& graph,
                                                            const PlanesOnDevice& planes) {
  std::vector<std::shared_ptr<const DeviceMemory>> memory = planes.memory;
  std::vector<bool> touched(memory.size(), false);
  for_each_touch(graph, graph.stages,
                 [&](const graph::Node&, const graph::NamedView& view) { touched[view.view.plane] = true; });
  const auto nothing = std::make_shared<const DeviceMemory>();
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] == nullptr && !(graph.planes[i].scratch && touched[i])) memory[i] = nothing;
  }
  return memory;
}

LoweringOptions options_for(const PlanesOnDevice& planes) {
  LoweringOptions options;
  options.account = planes.account;
  options.works = planes.works;
  return options;
}

class GraphBackend final : public DeviceBackend {
public:
  GraphBackend(std::shared_ptr<const Devices::Unit> unit, std::unique_ptr<DeviceGraph> graph)
      : unit_(std::move(unit)), name_(unit_->name()), graph_(std::move(graph)) {}

  [[nodiscard]] const std::string& device() const override { return name_; }
  [[nodiscard]] const std::vector<graph::StageSchedule>& schedule() const override {
    return graph_->schedule_by_stage();
  }

  [[nodiscard]] std::uint64_t own_bytes() const override { return graph_->own_bytes(); }

  Status launch(std::int64_t count, std::shared_ptr<const Control> control) override {
    failed_ = false;
    return graph_->launch(count, std::move(control));
  }
  [[nodiscard]] bool is_whole() const override { return graph_->is_whole(); }
  [[nodiscard]] bool ready() const override { return graph_->ready(); }
  StatusOr<Next> advance() override {
    const auto next = graph_->advance_some();
    failed_ = !next.ok() && next.status().reason() == Reason::system;
    if (!next.ok()) return next.status();
    switch (*next) {
      case DeviceGraph::Next::host_call:
        return Next::host_call;
      case DeviceGraph::Next::again:
        return Next::again;
      default:
        return Next::done;
    }
  }
  void give_up() override { graph_->give_up(); }
  [[nodiscard]] std::uint32_t call() const override { return graph_->call(); }
  [[nodiscard]] std::int64_t launches() const override { return graph_->launches(); }
  [[nodiscard]] bool part_way() const override { return failed_ || graph_->part_way(); }
  [[nodiscard]] const std::vector<std::int64_t>& iterations() const override { return graph_->iterations(); }
  StatusOr<KernelCounts> take_counts() override {
    EAGLE_ASSIGN_OR_RETURN(const codegen::DeviceCounts counts, graph_->take_counts());
    KernelCounts found;
    found.clamped = counts.clamped;
    found.zero_divisions = counts.zero_divisions;
    found.dropped = counts.dropped;
    return found;
  }

  Status update(const std::vector<graph::ParamUpdate>& updates) override { return graph_->update(updates); }
  Status keep_params_of(const DeviceBackend& other) override {
    return graph_->set_params(static_cast<const GraphBackend&>(other).graph_->params());
  }
  StatusOr<bool> rebind(const graph::Graph& graph, const PlanesOnDevice& planes) {
    if (planes.unit != unit_) return false;
    return graph_->rebind(*unit_->modules, graph, memory_for(graph, planes), options_for(planes));
  }
  void keep_rebind() override { graph_->keep_rebind(); }
  void undo_rebind() override { graph_->undo_rebind(); }

private:
  const std::shared_ptr<const Devices::Unit> unit_;
  const std::string name_;
  const std::unique_ptr<DeviceGraph> graph_;
  bool failed_ = false;
};

}  // namespace

Status check_on_device(const graph::Graph& graph, const PlanesOnDevice& planes) {
  std::size_t there = 0;
  while (there < planes.memory.size() && planes.memory[there] == nullptr) ++there;
  Status refused;
  for_each_touch(graph, graph.stages, [&](const graph::Node& node, const graph::NamedView& touched) {
    const std::uint32_t plane = touched.view.plane;
    if (!refused.ok() || planes.memory[plane] != nullptr || graph.planes[plane].scratch) return;
    refused = Status(Reason::mixed_devices,
                     "node " + kernel::quote_name(node.label) + ", " + kernel::quote_name(touched.name) +
                         ": " + name_of(graph, plane) + " is in memory of the host, and " +
                         name_of(graph, static_cast<std::uint32_t>(there)) + " lies on " +
                         text_of(planes.unit->info()) +
                         "; a graph runs where all of its arrays are: make this one with device=\"" +
                         planes.unit->name() + "\", or the other one with device=\"cpu\"");
  });
  return refused;
}

StatusOr<std::unique_ptr<DeviceBackend>> build_on_device(const graph::Graph& graph,
                                                         const PlanesOnDevice& planes) {
  EAGLE_ASSIGN_OR_RETURN(auto made, DeviceGraph::build(*planes.unit->modules, graph,
                                                       memory_for(graph, planes), options_for(planes)));
  return std::unique_ptr<DeviceBackend>(std::make_unique<GraphBackend>(planes.unit, std::move(made)));
}

StatusOr<bool> rebind_on_device(DeviceBackend& backend, const graph::Graph& graph,
                                const PlanesOnDevice& planes) {
  return static_cast<GraphBackend&>(backend).rebind(graph, planes);
}

}  // namespace eagle::run::cuda
