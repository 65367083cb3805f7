#include "client/saved_planes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "client/record/walk.h"
#include "client/view_table.h"
#include "eagle/v1/graph.pb.h"
#include "engine/graph/address.h"
#include "engine/graph/wire.h"
#include "engine/plane/packed.h"

namespace eagle::saved {
namespace {

// A view of a plane by a node, under a name of that node.
struct Use {
  std::uint32_t leaf = 0;
  const std::string* label = nullptr;
  std::string name;
  const plane::View* view = nullptr;
  bool read = false;
  bool written = false;
};

// All of them in the order of nodes, those of bodies included.
class Uses {
public:
  explicit Uses(const graph::Graph& graph) : graph_(graph) {
    for (const auto& kernel : graph.kernels) accesses_.push_back(kernel::accesses(*kernel));
    stages(graph.stages, true);
  }
  std::vector<Use> found;
  std::vector<std::pair<std::uint32_t, const std::string*>> calls;  // number, label
  std::vector<const graph::HostNode*> hosts;                        // of these

private:
  void stages(const std::vector<graph::Stage>& list, bool outermost) {
    for (const graph::Stage& stage : list) {
      graph::for_each_leaf(stage.branches, [&](const graph::Node& node) {
        visit(node);
        if (outermost) ++leaf_;
      });
    }
  }

  void use(const graph::Node& node, std::string name, const plane::View& view, bool read, bool written) {
    found.push_back({leaf_, &node.label, std::move(name), &view, read, written});
  }

  void visit(const graph::Node& node) {
    if (const auto* launch = graph::as<graph::KernelLaunch>(node)) {
      const kernel::Kernel& kernel = *graph_.kernels[launch->kernel];
      for (std::size_t i = 0; i < launch->arguments.size(); ++i) {
        const kernel::Access& access = accesses_[launch->kernel][i];
        if (launch->arguments[i].view)
          use(node, kernel.arguments[i].name, *launch->arguments[i].view, access.read, access.written);
      }
    } else if (const auto* host = graph::as<graph::HostNode>(node)) {
      for (const graph::NamedView& view : host->reads) use(node, view.name, view.view, true, false);
      for (const graph::NamedView& view : host->writes) use(node, view.name, view.view, false, true);
      calls.emplace_back(host->call, &node.label);
      hosts.push_back(host);
    } else if (const auto* reduce = graph::as<graph::Reduce>(node)) {
      use(node, reduce->x.name, reduce->x.view, true, false);
      use(node, reduce->out.name, reduce->out.view, false, true);
    } else if (const auto* copy = graph::as<graph::Copy>(node)) {
      use(node, std::string(graph::copy_source_name), copy->source, true, false);
      use(node, std::string(graph::copy_destination_name), copy->destination, false, true);
      if (copy->index) use(node, copy->index->name, copy->index->view, true, false);
    } else if (const auto* conditional = graph::as<graph::Conditional>(node)) {
      const graph::Guard& guard = conditional->guard;
      use(node, guard.count.name, guard.count.view, true, false);
      if (guard.baseline) use(node, guard.baseline->name, guard.baseline->view, true, false);
      if (conditional->iterations)
        use(node, conditional->iterations->name, conditional->iterations->view, false, true);
      stages(conditional->body, false);
    }
  }

  const graph::Graph& graph_;
  std::vector<std::vector<kernel::Access>> accesses_;
  std::uint32_t leaf_ = 0;
};

// What a use may be called, best first.
std::vector<std::string> names_of(const Use& use) {
  return {use.name, *use.label + "." + use.name, std::to_string(use.leaf) + "." + use.name};
}

bool is_row_major(const plane::View& view) {
  return view.strides == plane::row_major_strides(view.shape, view.item_bytes);
}

// How nodes see one plane.
void describe(const std::vector<const Use*>& uses, std::uint64_t bytes, Place& place) {
  SavedPlane& plane = place.plane;
  plane.bytes = bytes;
  const plane::View& first = *uses.front()->view;
  const plane::View* whole = nullptr;
  for (const Use* use : uses) {
    plane.read |= use->read;
    plane.written |= use->written;
    const plane::View& view = *use->view;
    place.seen_alike &= view == first;
    const plane::Extent extent = plane::extent(view);
    const bool all =
        extent.first == 0 && static_cast<std::uint64_t>(extent.last) == bytes && is_row_major(view);
    if (whole == nullptr && all) whole = &view;
  }
  if (place.seen_alike) whole = &first;
  if (whole != nullptr) {
    plane.dtype = whole->dtype;
    plane.item_bytes = whole->item_bytes;
    plane.shape = whole->shape;
  } else {
    plane.dtype = DType::boolean;
    plane.item_bytes = 1;
    plane.shape = {static_cast<std::int64_t>(bytes)};
  }
}

// Planes in the order in which nodes come to them: where memory lay says nothing.
void number_planes(v1::GraphDescription& description) {
  constexpr auto none = static_cast<std::uint32_t>(-1);
  std::vector<std::uint32_t> number(static_cast<std::size_t>(description.planes_size()), none);
  std::vector<v1::PlaneDeclaration> in_order;
  record::for_each_view(description, [&](v1::View& view) {
    std::uint32_t& known = number[view.plane()];
    if (known == none) {
      known = static_cast<std::uint32_t>(in_order.size());
      in_order.push_back(description.planes(static_cast<int>(view.plane())));
    }
    view.set_plane(known);
  });
  description.clear_planes();
  for (v1::PlaneDeclaration& plane : in_order) *description.add_planes() = std::move(plane);
}

}  // namespace

StatusOr<v1::GraphDescription> detached(const v1::GraphDescription& description) {
  // Addresses that mean nothing, plane behind plane: what shares bytes is found as in a process's memory.
  struct Base {
    std::uint64_t address = 0;
    std::shared_ptr<const ScratchPlane> scratch;
  };
  constexpr std::uint64_t room = std::uint64_t{1} << 62;
  std::vector<Base> bases;
  std::uint64_t next = 4096;
  for (const v1::PlaneDeclaration& plane : description.planes()) {
    if (plane.has_scratch()) {
      bases.push_back(
          {0, std::make_shared<const ScratchPlane>(ScratchPlane{plane.label(), plane.bytes(), {}})});
      continue;
    }
    if (plane.bytes() > room - next - 4096)
      return Status(Reason::graph_limit, "save: the planes of the graph have over 2^62 bytes together");
    bases.push_back({next, nullptr});
    next = (next + plane.bytes() + 4096) & ~std::uint64_t{63};
  }
  v1::GraphDescription made = description;
  ViewTable views;
  Status status;
  record::for_each_view(made, [&](v1::View& view) {
    if (!status.ok()) return;
    if (view.plane() >= bases.size()) {
      status = {Reason::malformed_graph, "save: a view of plane " + std::to_string(view.plane()) +
                                             ", and there are " + std::to_string(bases.size())};
      return;
    }
    const Base& base = bases[view.plane()];
    ArrayView array;
    array.data = reinterpret_cast<void*>(base.address + static_cast<std::uint64_t>(view.offset()));
    array.dtype = static_cast<DType>(view.dtype());
    array.item_bytes = view.item_bytes();
    array.shape.assign(view.shape().begin(), view.shape().end());
    array.strides.assign(view.strides().begin(), view.strides().end());
    array.scratch = base.scratch;
    view.Clear();
    status = views.add(array, "save: a view", view);
  });
  EAGLE_RETURN_IF_ERROR(status);
  made.clear_planes();
  Backing unused;
  views.finish([&]() -> v1::PlaneDeclaration& { return *made.add_planes(); }, unused);
  number_planes(made);
  std::uint32_t calls = 0;
  for_each_node(*made.mutable_stages(), [&](v1::Node& node) {
    if (node.has_host()) node.mutable_host()->set_call(calls++);
  });
  return made;
}

std::vector<Place> planes_of(const graph::Graph& graph) {
  const Uses uses(graph);
  std::vector<std::vector<const Use*>> by_plane(graph.planes.size());
  std::map<std::string, std::set<std::uint32_t>> meant;
  for (const Use& use : uses.found) {
    if (graph.planes[use.view->plane].scratch) continue;
    by_plane[use.view->plane].push_back(&use);
    for (const std::string& name : names_of(use)) meant[name].insert(use.view->plane);
  }
  std::vector<Place> places;
  for (std::uint32_t i = 0; i < by_plane.size(); ++i) {
    if (graph.planes[i].scratch || by_plane[i].empty()) continue;  // nobody asks for what no node sees
    Place place;
    place.index = i;
    describe(by_plane[i], graph.planes[i].bytes, place);
    for (std::size_t kind = 0; kind < 3; ++kind) {
      for (const Use* use : by_plane[i]) {
        std::string name = names_of(*use)[kind];
        std::vector<std::string>& known = place.plane.names;
        if (meant[name].size() == 1 && std::find(known.begin(), known.end(), name) == known.end())
          known.push_back(std::move(name));
      }
    }
    if (place.plane.names.empty()) place.plane.names.push_back("plane " + std::to_string(i));
    place.plane.name = place.plane.names.front();
    places.push_back(std::move(place));
  }
  return places;
}

std::vector<std::string> calls_of(const graph::Graph& graph) {
  const Uses uses(graph);
  std::map<std::string_view, int> all;
  for (const auto& [number, label] : uses.calls) ++all[*label];
  std::map<std::string_view, int> seen;
  std::vector<std::string> names;
  for (const auto& [number, label] : uses.calls)
    names.push_back(all[*label] == 1 ? *label : *label + "." + std::to_string(seen[*label]++));
  return names;
}

std::vector<std::vector<SavedView>> call_arrays_of(const graph::Graph& graph,
                                                   const std::vector<Place>& places) {
  std::map<std::uint32_t, const Place*> by_index;
  for (const Place& place : places) by_index.emplace(place.index, &place);
  std::vector<std::vector<SavedView>> arrays;
  const Uses uses(graph);
  for (const graph::HostNode* const node : uses.hosts) {
    std::vector<SavedView>& found = arrays.emplace_back();
    const auto add = [&](const std::vector<graph::NamedView>& views, bool written) {
      for (const auto& [name, view] : views) {
        const auto place = by_index.find(view.plane);
        if (place == by_index.end()) continue;  // scratch, which callables do not see
        found.push_back({name, place->second->plane.name, view.dtype, view.item_bytes, view.shape,
                         view.strides, view.offset, written, place->second->seen_alike});
      }
    };
    add(node->reads, false);
    add(node->writes, true);
  }
  return arrays;
}

Status apply(const std::vector<graph::ParamUpdate>& updates, v1::GraphDescription& description) {
  if (updates.empty()) return {};
  EAGLE_ASSIGN_OR_RETURN(const graph::Graph graph,
                         graph::read(description, graph::PrivateKernelPlanes::allowed));
  std::vector<v1::KernelLaunch*> launches;
  for_each_node(*description.mutable_stages(), [&](v1::Node& node) {
    if (node.has_kernel()) launches.push_back(node.mutable_kernel());
  });
  for (const graph::ParamUpdate& update : updates) {
    EAGLE_ASSIGN_OR_RETURN(const auto targets,
                           graph::resolve(graph, update.address, graph::Wanted::param, "update"));
    v1::ParamUpdate message;
    graph::to_message(update, message);
    for (const graph::Target& target : targets) {
      v1::KernelLaunch& launch = *launches[target.launch];
      const std::string& name = graph.kernels[launch.kernel()]->arguments[target.argument].name;
      for (v1::Binding& binding : *launch.mutable_bindings()) {
        if (binding.argument() == name) *binding.mutable_param() = message.value();
      }
    }
  }
  return {};
}

namespace {

void visit_branch_nodes(v1::Node& node, const std::function<void(v1::Node&)>& visit) {
  if (node.has_group()) {
    for (v1::Branch& branch : *node.mutable_group()->mutable_branches()) {
      for (v1::Node& inner : *branch.mutable_nodes()) visit_branch_nodes(inner, visit);
    }
    return;
  }
  visit(node);
  if (node.has_skippable()) for_each_node(*node.mutable_skippable()->mutable_body(), visit);
  if (node.has_repeat_while()) for_each_node(*node.mutable_repeat_while()->mutable_body(), visit);
}

}  // namespace

void for_each_node(google::protobuf::RepeatedPtrField<v1::Stage>& stages,
                   const std::function<void(v1::Node&)>& visit) {
  for (v1::Stage& stage : stages) {
    if (stage.has_node()) visit_branch_nodes(*stage.mutable_node(), visit);
    if (!stage.has_group()) continue;
    for (v1::Branch& branch : *stage.mutable_group()->mutable_branches()) {
      for (v1::Node& node : *branch.mutable_nodes()) visit_branch_nodes(node, visit);
    }
  }
}

}  // namespace eagle::saved
