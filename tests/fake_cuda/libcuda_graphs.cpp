// The entry points of graphs.
#include <algorithm>
#include <memory>
#include <utility>

#include "tests/fake_cuda/world.h"

namespace eagle::fake_cuda {
namespace {

// The graph, or the body of one that contains it.
bool is_graph(const api::GraphRecord& within, const api::GraphRecord* graph) {
  if (&within == graph) return true;
  for (const auto& node : within.nodes) {
    if (node->body && is_graph(*node->body, graph)) return true;
  }
  return false;
}
bool is_graph(const api::GraphRecord* graph) {
  return std::any_of(world().graphs.begin(), world().graphs.end(),
                     [&](const auto& one) { return is_graph(*one, graph); });
}

// Gives a new node its parents, which are others of its graph, each once.
bool take_parents(const api::GraphRecord& graph, const api::GraphNode* parents, std::size_t count,
                  api::GraphNodeRecord& node) {
  for (std::size_t i = 0; i < count; ++i) {
    const bool twice = std::find(parents, parents + i, parents[i]) != parents + i;
    if (twice || held(graph.nodes, parents[i]) == graph.nodes.end()) return false;
    node.parents.push_back(parents[i]);
  }
  return true;
}

}  // namespace
}  // namespace eagle::fake_cuda

using namespace eagle::fake_cuda;  // NOLINT: the functions below have the driver's names

extern "C" {

Result cuGraphCreate(api::Graph* graph, unsigned flags) {
  return in_context([&](api::ContextRecord&) {
    if (flags != 0) return api::invalid_value;
    auto record = std::make_unique<api::GraphRecord>();
    *graph = record.get();
    world().graphs.insert(std::move(record));
    return api::success;
  });
}

Result cuGraphDestroy(api::Graph graph) {
  return in_context([&](api::ContextRecord&) {
    const auto found = held(world().graphs, graph);
    if (found == world().graphs.end()) return api::invalid_value;
    world().graphs.erase(found);
    return api::success;
  });
}

Result cuGraphAddKernelNode(api::GraphNode* node, api::Graph graph, const api::GraphNode* parents,
                            std::size_t count, const api::KernelNodeParams* parameters) {
  return in_context([&](api::ContextRecord&) {
    if (!is_graph(graph)) return api::invalid_value;
    auto record = std::make_unique<api::GraphNodeRecord>();
    record->graph = graph;
    if (!work_of(*parameters, record->work) || !take_parents(*graph, parents, count, *record))
      return api::invalid_value;
    *node = record.get();
    graph->nodes.push_back(std::move(record));
    return api::success;
  });
}

Result cuGraphKernelNodeSetParams(api::GraphNode node, const api::KernelNodeParams* parameters) {
  return in_context([&](api::ContextRecord&) {
    if (!is_graph(node->graph) || node->conditional) return api::invalid_value;
    return work_of(*parameters, node->work) ? api::success : api::invalid_value;
  });
}

Result cuGraphConditionalHandleCreate(std::uint64_t* handle, api::Graph graph, api::Context context,
                                      unsigned value, unsigned flags) {
  return in_context([&](api::ContextRecord& current_context) {
    if (!is_graph(graph) || context != &current_context || value != 0 || flags != 0)
      return api::invalid_value;
    *handle = 0x1000 + world().conditions.size();
    world().conditions[*handle] = 0;
    graph->handles.insert(*handle);
    return api::success;
  });
}

// Each handle has one node, in the graph that it was made for.
Result cuGraphAddNode_v2(api::GraphNode* node, api::Graph graph, const api::GraphNode* parents,
                         const void* edges, std::size_t count, api::ConditionalNodeParams* parameters) {
  return in_context([&](api::ContextRecord& context) {
    const bool known =
        parameters->type == 13 && parameters->size == 1 && parameters->context == &context &&
        (parameters->kind == api::conditional_if || parameters->kind == api::conditional_while);
    if (!is_graph(graph) || edges != nullptr || !known || graph->handles.erase(parameters->handle) == 0)
      return api::invalid_value;
    auto record = std::make_unique<api::GraphNodeRecord>();
    record->graph = graph;
    if (!take_parents(*graph, parents, count, *record)) return api::invalid_value;
    record->conditional = std::make_unique<api::Conditional>();
    record->conditional->handle = parameters->handle;
    record->conditional->kind = parameters->kind;
    record->body = std::make_unique<api::GraphRecord>();
    world().bodies.push_back(std::make_unique<api::Graph>(record->body.get()));
    parameters->bodies = world().bodies.back().get();
    *node = record.get();
    graph->nodes.push_back(std::move(record));
    return api::success;
  });
}

Result cuGraphInstantiateWithFlags(api::GraphExec* exec, api::Graph graph, unsigned long long flags) {
  return in_context([&](api::ContextRecord&) {
    if (flags != 0 || held(world().graphs, graph) == world().graphs.end()) return api::invalid_value;
    std::shared_ptr<api::GraphExecRecord> record = instantiated(*graph);
    *exec = record.get();
    world().execs.insert(std::move(record));
    return api::success;
  });
}

// Nodes in bodies cannot be changed here.
Result cuGraphExecKernelNodeSetParams(api::GraphExec exec, api::GraphNode node,
                                      const api::KernelNodeParams* parameters) {
  return in_context([&](api::ContextRecord&) {
    if (held(world().execs, exec) == world().execs.end()) return api::invalid_value;
    for (api::GraphExecRecord::Node& one : exec->nodes) {
      if (one.made_of == node && !one.conditional)
        return work_of(*parameters, one.work) ? api::success : api::invalid_value;
    }
    return api::invalid_value;
  });
}

Result cuMemsetD8Async(api::DevicePointer to, unsigned char value, std::size_t bytes, api::Stream stream) {
  return in_context([&](api::ContextRecord&) {
    if (held(world().streams, stream) == world().streams.end()) return api::invalid_handle;
    if (!is_there(to, bytes)) return api::invalid_value;
    stream->waiting.push_back(api::Memset{to, value, bytes});
    return api::success;
  });
}

Result cuGraphLaunch(api::GraphExec exec, api::Stream stream) {
  return in_context([&](api::ContextRecord&) {
    if (held(world().execs, exec) == world().execs.end()) return api::invalid_value;
    if (held(world().streams, stream) == world().streams.end()) return api::invalid_handle;
    auto launched = std::make_shared<api::GraphExecRecord>();
    for (const api::GraphExecRecord::Node& node : exec->nodes) launched->nodes.push_back(node.copy());
    stream->waiting.push_back(std::move(launched));
    return api::success;
  });
}

Result cuGraphExecDestroy(api::GraphExec exec) {
  return in_context([&](api::ContextRecord&) {
    const auto found = held(world().execs, exec);
    if (found == world().execs.end()) return api::invalid_value;
    world().execs.erase(found);
    return api::success;
  });
}

}  // extern "C"
