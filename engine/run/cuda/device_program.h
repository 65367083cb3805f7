// DeviceProgram: a graph lowered to CUDA graphs, and to what the host does between them.
//
// Where nothing needs the host it is one CUDA graph: leaves are chains of kernels whose parents are the
// derived edges, conditionals are nodes whose bodies are graphs again, with guards that the device evaluates.
// What a callable of this process was captured to is a node, too (DeviceWork). Any other host node ends one
// CUDA graph, and the next one begins behind it. So does a conditional that holds one, or any conditional
// where the driver has no such nodes: the host then looks at the guard between launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/status.h"
#include "engine/graph/graph.h"
#include "engine/graph/run_plan.h"
#include "engine/graph/schedule.h"
#include "engine/run/cuda/captured_graph.h"
#include "engine/run/cuda/device_exec.h"
#include "engine/run/cuda/device_modules.h"
#include "engine/run/cuda/device_nodes.h"

namespace eagle::run::cuda {

using Parents = std::vector<std::vector<std::uint32_t>>;  // by leaf

// How a part of a graph runs; in order. The schedule of a graph on a device, for people.
struct DeviceStage {
  enum class Kind { cuda_graph, stream_call, host_call, host_loop, host_check };
  Kind kind = Kind::cuda_graph;
  std::size_t nodes = 0;  // kernels and conditionals of a CUDA graph
  std::string text;       // "'relax' repeats between host checks: ...", why so
};
std::string_view name_of(DeviceStage::Kind kind);  // "cuda_graph"

struct RunPart {
  std::uint32_t part = 0;
};
// A callable that enqueues on this stream: behind what has been enqueued, and before what follows.
struct RunOnStream {
  std::uint32_t call = 0;
  api::Stream stream = nullptr;
};
// As in graph::RunPlan, where the host looks at the guard.
using DeviceInstruction = std::variant<RunPart, RunOnStream, graph::RunHostCall, graph::SkipUnless,
                                       graph::LoopEnter, graph::LoopTest, graph::LoopBack>;

// A kernel in a CUDA graph.
struct PlacedNode {
  DeviceNode node;
  api::GraphNode handle = nullptr;
  std::uint32_t part = 0;
  bool in_body = false;
};

struct DeviceProgram {
  std::vector<DeviceMemory> scratch;
  std::vector<PlacedNode> nodes;
  std::vector<std::size_t> launches;  // by launch in the order of a walk: index into `nodes`
  std::vector<DeviceExec> parts;
  std::vector<DeviceInstruction> instructions;
  std::vector<DeviceStage> stages;
  std::vector<graph::StageSchedule> schedule;  // by stage of the graph
  std::uint32_t loops = 0;
  std::vector<std::optional<plane::View>> counters;  // by loop
  std::vector<Parents> parents;                      // of the graph's leaves and of bodies, as they come
};

// Calls `visit(launch, argument, word)` for each Param: the number of the launch, and which word of its node
// has the bits.
template <typename Visit>
void for_each_param(const DeviceProgram& program, const Visit& visit) {
  for (std::uint32_t launch = 0; launch < program.launches.size(); ++launch) {
    const auto& arguments = program.nodes[program.launches[launch]].node.kernel->arguments;
    for (std::uint32_t argument = 0; argument < arguments.size(); ++argument) {
      if (!kernel::has_plane(arguments[argument].role))
        visit(launch, argument, codegen::device_base_word(argument));
    }
  }
}

// What a callable of this very process does on the device, where it is not to be called between two CUDA
// graphs that the host has waited for.
struct DeviceWork {
  std::shared_ptr<const CapturedGraph> graph;  // a node of the graph
  std::optional<api::Stream> stream;           // or where it enqueues at each launch
};
using DeviceWorks = std::map<std::uint32_t, DeviceWork>;  // by HostNode::call

struct LoweringOptions {
  DeviceWorks works;
  bool conditionals = true;  // as nodes, where the driver has them
  // Pays for what the graph makes for itself: scratch planes, notes, and values on their way.
  Account account;
  // What the device is told of the parents of the graph's own leaves; for the test that it matters.
  std::function<void(Parents&)> change_parents;
};

// So many conditionals inside each other are nodes of a device; deeper ones are the host's.
inline constexpr int most_device_depth = 8;
inline constexpr std::size_t most_device_nodes = 10'000;

std::uint32_t count_loops(const std::vector<graph::Stage>& stages);

// `planes`: where they are. `beside`: a Beside. `ran`: an i64 for each loop. GRAPH_LIMIT beyond
// `most_device_nodes` kernels; what `DeviceNodes` says.
StatusOr<DeviceProgram> lower(DeviceModules& modules, const graph::Graph& graph,
                              const std::vector<api::DevicePointer>& planes, api::DevicePointer beside,
                              api::DevicePointer ran, const LoweringOptions& options);

// The same graph over other planes: what `built` would be over them, without memory and parts of its own; its
// nodes have the handles of `built`'s, and the numbers of its Params. Nothing where more than words of
// parameters differ: other edges, since other arrays overlap; a copy of other strides, which is another
// routine. Makes nothing on the device but for code that it has dropped.
StatusOr<std::optional<DeviceProgram>> lower_again(DeviceModules& modules, const graph::Graph& graph,
                                                   const std::vector<api::DevicePointer>& planes,
                                                   api::DevicePointer beside, api::DevicePointer ran,
                                                   const LoweringOptions& options,
                                                   const DeviceProgram& built);

}  // namespace eagle::run::cuda
