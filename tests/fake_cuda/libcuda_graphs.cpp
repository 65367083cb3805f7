// The entry points of graphs.
#include <algorithm>
#include <array>
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

// Within a conditional, however deep in child graphs.
bool is_in_body(const api::GraphRecord& within, const api::GraphRecord* graph, bool inside) {
  if (&within == graph) return inside;
  return std::any_of(within.nodes.begin(), within.nodes.end(), [&](const auto& node) {
    return node->body && is_in_body(*node->body, graph, inside || node->conditional);
  });
}
bool is_in_body(const api::GraphRecord* graph) {
  return std::any_of(world().graphs.begin(), world().graphs.end(),
                     [&](const auto& one) { return is_in_body(*one, graph, false); });
}
// Which bodies of conditionals may not have.
bool has_host_work(const api::GraphRecord& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const auto& node) {
    return std::holds_alternative<api::HostWork>(node->work) || (node->body && has_host_work(*node->body));
  });
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
    api::Work work;
    if (!work_of(*parameters, work) || !take_parents(*graph, parents, count, *record))
      return api::invalid_value;
    record->work = std::move(work);
    *node = record.get();
    graph->nodes.push_back(std::move(record));
    return api::success;
  });
}

Result cuGraphKernelNodeSetParams(api::GraphNode node, const api::KernelNodeParams* parameters) {
  return in_context([&](api::ContextRecord&) {
    if (++world().changed == pretence().fail_change) return api::out_of_memory;
    auto* const work = is_graph(node->graph) && !node->body ? std::get_if<api::Work>(&node->work) : nullptr;
    return work != nullptr && work_of(*parameters, *work) ? api::success : api::invalid_value;
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
    if (++world().instantiated == pretence().fail_instantiate) return api::out_of_memory;
    const bool conditionals = std::any_of(graph->nodes.begin(), graph->nodes.end(),
                                          [](const auto& node) { return node->conditional != nullptr; });
    const bool there = std::any_of(world().execs.begin(), world().execs.end(),
                                   [&](const auto& one) { return one->made_of == graph; });
    if (pretence().single && conditionals && there) return api::invalid_value;
    std::shared_ptr<api::GraphExecRecord> record = instantiated(*graph);
    record->made_of = graph;
    *exec = record.get();
    world().execs.insert(std::move(record));
    return api::success;
  });
}

// Nodes in bodies cannot be changed here.
Result cuGraphExecKernelNodeSetParams(api::GraphExec exec, api::GraphNode node,
                                      const api::KernelNodeParams* parameters) {
  return in_context([&](api::ContextRecord&) {
    if (++world().changed == pretence().fail_change) return api::out_of_memory;
    if (held(world().execs, exec) == world().execs.end()) return api::invalid_value;
    for (api::GraphExecRecord::Node& one : exec->nodes) {
      auto* const work = std::get_if<api::Work>(&one.work);
      if (one.made_of == node && !one.body && work != nullptr)
        return work_of(*parameters, *work) ? api::success : api::invalid_value;
    }
    return api::invalid_value;
  });
}

Result cuGraphLaunch(api::GraphExec exec, api::Stream stream) {
  return in_context([&](api::ContextRecord& context) {
    if (held(world().execs, exec) == world().execs.end()) return api::invalid_value;
    const auto found = stream_of(context, stream);
    if (!found) return api::invalid_handle;
    if (found->capture) {  // a driver makes a child of it; nobody here does that
      found->capture->invalid = true;
      return api::capture_unsupported;
    }
    auto launched = std::make_shared<api::GraphExecRecord>();
    for (const api::GraphExecRecord::Node& node : exec->nodes) launched->nodes.push_back(node.copy());
    launched->retained = exec->retained;
    found->waiting.emplace_back(std::shared_ptr<const api::GraphExecRecord>(std::move(launched)));
    return api::success;
  });
}

// ---- graphs in graphs

Result cuGraphClone(api::Graph* clone, api::Graph graph) {
  return in_context([&](api::ContextRecord&) {
    if (!is_graph(graph)) return api::invalid_value;
    auto made = cloned(*graph);
    if (!made) return api::invalid_value;
    *clone = made.get();
    world().graphs.insert(std::move(made));
    return api::success;
  });
}

// Cloned: what becomes of the child afterwards changes nothing.
Result cuGraphAddChildGraphNode(api::GraphNode* node, api::Graph graph, const api::GraphNode* parents,
                                std::size_t count, api::Graph child) {
  return in_context([&](api::ContextRecord&) {
    if (!is_graph(graph) || !is_graph(child) || is_graph(*child, graph)) return api::invalid_value;
    auto record = std::make_unique<api::GraphNodeRecord>();
    record->graph = graph;
    if (!take_parents(*graph, parents, count, *record)) return api::invalid_value;
    record->body = cloned(*child);
    if (!record->body || (is_in_body(graph) && has_host_work(*record->body))) return api::invalid_value;
    *node = record.get();
    graph->nodes.push_back(std::move(record));
    return api::success;
  });
}

Result cuGraphGetNodes(api::Graph graph, api::GraphNode* nodes, std::size_t* count) {
  return in_context([&](api::ContextRecord&) {
    if (!is_graph(graph)) return api::invalid_value;
    if (nodes != nullptr) {
      for (std::size_t i = 0; i < *count; ++i)
        nodes[i] = i < graph->nodes.size() ? graph->nodes[i].get() : nullptr;
    }
    *count = graph->nodes.size();
    return api::success;
  });
}

Result cuGraphNodeGetType(api::GraphNode node, int* type) {
  return in_context([&](api::ContextRecord&) {
    if (!is_graph(node->graph)) return api::invalid_value;
    constexpr std::array of_pieces = {api::node_kernel, api::node_memset, api::node_copy, api::node_copy,
                                      api::node_host};
    if (node->body) {
      *type = node->conditional ? api::node_conditional : api::node_graph;
    } else if (const auto* memory = std::get_if<api::GraphMemory>(&node->work)) {
      *type = memory->frees ? api::node_free : api::node_allocation;
    } else {
      *type = of_pieces.at(node->work.index());
    }
    return api::success;
  });
}

Result cuGraphChildGraphNodeGetGraph(api::GraphNode node, api::Graph* graph) {
  return in_context([&](api::ContextRecord&) {
    if (!is_graph(node->graph) || !node->body || node->conditional) return api::invalid_value;
    *graph = node->body.get();
    return api::success;
  });
}

Result cuUserObjectCreate(api::UserObject* object, void* pointer, api::HostFunction destroy, unsigned count,
                          unsigned flags) {
  return in_context([&](api::ContextRecord&) {
    if (destroy == nullptr || count != 1 || flags != api::user_object_unsynchronised)
      return api::invalid_value;
    auto record = std::make_shared<api::UserObjectRecord>();
    record->pointer = pointer;
    record->destroy = destroy;
    *object = record.get();
    world().user_objects.insert(std::move(record));
    return api::success;
  });
}

// The caller's own reference goes over.
Result cuGraphRetainUserObject(api::Graph graph, api::UserObject object, unsigned count, unsigned flags) {
  return in_context([&](api::ContextRecord&) {
    const auto found = held(world().user_objects, object);
    if (!is_graph(graph) || found == world().user_objects.end() || count != 1 ||
        flags != api::user_object_move)
      return api::invalid_value;
    graph->retained.push_back(*found);
    world().user_objects.erase(found);
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
