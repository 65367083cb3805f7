// Files of graphs in a session: a graph of the file's nodes over this session's arrays, and the way there.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "client/graph_state.h"
#include "client/saved_planes.h"
#include "eagle/client/graph_file.h"
#include "eagle/v1/graph.pb.h"
#include "engine/kernel/names.h"
#include "engine/plane/layout.h"
#include "engine/plane/packed.h"

namespace eagle {
namespace {

using kernel::quote_name;

template <typename Names>
std::string list_of(const Names& names) {
  constexpr std::size_t most = 20;
  std::string text;
  std::size_t listed = 0;
  for (const std::string& name : names) {
    if (++listed > most) return text + " and " + std::to_string(names.size() - most) + " more";
    text += (text.empty() ? "" : ", ") + quote_name(name);
  }
  return text;
}

// "float64 (3, 4)", with strides where they are not those of a row-major array.
std::string shape_text(const ArrayView& array) {
  std::string text = array.dtype == DType::other ? std::to_string(array.item_bytes) + " bytes"
                                                 : std::string(plane::name_of(array.dtype));
  const auto tuple = [&](const std::vector<std::int64_t>& numbers) {
    text += " (";
    for (std::size_t i = 0; i < numbers.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(numbers[i]);
    text += numbers.size() == 1 ? ",)" : ")";
  };
  tuple(array.shape);
  if (array.strides != plane::row_major_strides(array.shape, array.item_bytes)) {
    text += " strides";
    tuple(array.strides);
  }
  return text;
}

// What stands for one plane of the file.
struct Given {
  ArrayView array;  // element 0 of it is where the plane's views are counted from
  bool alike = true;
};

Status check_fits(const saved::Place& place, const ArrayView& array) {
  const SavedPlane& plane = place.plane;
  const auto where = [&] { return "plane " + quote_name(plane.name); };
  const std::vector<std::int64_t> dense = plane::row_major_strides(array.shape, array.item_bytes);
  const bool typed = array.dtype == plane.dtype && array.item_bytes == plane.item_bytes;
  if (typed && array.shape == plane.shape && (place.seen_alike || array.strides == dense)) return {};
  const std::string expected = shape_text({nullptr,
                                           plane.dtype,
                                           plane.item_bytes,
                                           plane.shape,
                                           row_major_strides(plane.shape, plane.item_bytes),
                                           false,
                                           {}});
  if (place.seen_alike || plane.dtype != DType::boolean || plane.shape.size() != 1 ||
      static_cast<std::uint64_t>(plane.shape[0]) != plane.bytes) {
    return {typed ? Reason::wrong_shape : Reason::wrong_dtype,
            where() + ": expected an array like " + expected + ", found " + shape_text(array) +
                "; give one that is, or leave it out and store into the one that is made"};
  }
  // Its nodes see it in several ways, and none sees it whole.
  std::uint64_t bytes = array.item_bytes;
  for (const std::int64_t extent : array.shape) bytes *= static_cast<std::uint64_t>(extent);
  if (array.strides == dense && bytes == plane.bytes) return {};
  return {Reason::wrong_shape, where() + ": its nodes see parts of it; expected a row-major array of " +
                                   std::to_string(plane.bytes) + " bytes in all, found " + shape_text(array)};
}

// Writes the specs that `describe_graph` would make the description of.
class Specs {
public:
  Specs(const GraphFile& file, std::map<std::uint32_t, Given> planes,
        std::vector<std::function<Status()>> calls)
      : message_(file.description()),
        graph_(file.graph()),
        planes_(std::move(planes)),
        calls_(std::move(calls)) {
    for (const v1::PlaneDeclaration& plane : message_.planes()) {
      if (!plane.has_scratch()) {
        scratch_.emplace_back();
        continue;
      }
      scratch_.push_back(
          std::make_shared<const ScratchPlane>(ScratchPlane{plane.label(), plane.bytes(), {}}));
    }
  }

  Status add_to(Graph& graph) const {
    for (const v1::Stage& stage : message_.stages()) {
      Status added;
      if (stage.has_group()) {
        added = graph.add_group(branches(stage.group()));
      } else {
        added = graph.add_node(kind(stage.node()), stage.node().name());
      }
      EAGLE_RETURN_IF_ERROR(added);
    }
    return {};
  }

private:
  [[nodiscard]] ArrayView view(const v1::View& message) const {
    ArrayView array;
    array.dtype = static_cast<DType>(message.dtype());
    array.item_bytes = message.item_bytes();
    array.shape.assign(message.shape().begin(), message.shape().end());
    array.strides.assign(message.strides().begin(), message.strides().end());
    if (const auto& scratch = scratch_[message.plane()]) {
      array.scratch = scratch;
      array.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(message.offset()));
      return array;
    }
    const Given& given = planes_.at(message.plane());
    array.read_only = given.array.read_only;
    array.owner = given.array.owner;
    if (given.alike) {
      array.data = given.array.data;
      array.strides = given.array.strides;
    } else {
      array.data = static_cast<std::byte*>(given.array.data) + message.offset();
    }
    return array;
  }
  [[nodiscard]] std::pair<std::string, ArrayView> named(const v1::NamedView& message) const {
    return {message.name(), view(message.view())};
  }
  [[nodiscard]] NamedArrays all_named(
      const google::protobuf::RepeatedPtrField<v1::NamedView>& messages) const {
    NamedArrays arrays;
    for (const v1::NamedView& message : messages) arrays.push_back(named(message));
    return arrays;
  }

  [[nodiscard]] NodeKind kind(const v1::Node& node) const {
    switch (node.kind_case()) {
      case v1::Node::kKernel:
        return plan(node.kernel());
      case v1::Node::kHost:
        return Opaque{calls_[node.host().call()], all_named(node.host().reads()),
                      all_named(node.host().writes()), static_cast<HostTier>(node.host().tier()), nullptr};
      case v1::Node::kReduce:
        return Reduce{view(node.reduce().x().view()), view(node.reduce().out().view()),
                      static_cast<ReduceOp>(node.reduce().op()), node.reduce().compensated()};
      case v1::Node::kCopy: {
        std::optional<ArrayView> index;
        if (node.copy().has_index()) index = view(node.copy().index().view());
        return copy(view(node.copy().source()), view(node.copy().destination()), std::move(index));
      }
      case v1::Node::kSkippable:
        return skippable(body(node.skippable().body()), guard(node.skippable().guard()));
      case v1::Node::kRepeatWhile: {
        const v1::RepeatWhile& loop = node.repeat_while();
        std::optional<ArrayView> iterations;
        if (loop.has_iterations()) iterations = view(loop.iterations().view());
        return repeat_while(body(loop.body()), guard(loop.guard()), loop.max_iterations(),
                            std::move(iterations));
      }
      case v1::Node::kGroup:
        return Group{branches(node.group())};
      case v1::Node::KIND_NOT_SET:
        break;
    }
    return Group{};  // refused by graph::read
  }

  [[nodiscard]] BoundPlan plan(const v1::KernelLaunch& launch) const {
    BoundPlan made{graph_.kernels[launch.kernel()], {}};
    for (const v1::Binding& binding : launch.bindings()) {
      if (binding.has_view()) {
        made.arguments.emplace_back(binding.argument(), view(binding.view()));
      } else if (binding.param().has_integer()) {
        made.arguments.emplace_back(binding.argument(), std::int64_t{binding.param().integer()});
      } else {
        made.arguments.emplace_back(binding.argument(), binding.param().real());
      }
    }
    return made;
  }

  [[nodiscard]] SkipGuard guard(const v1::Guard& message) const {
    SkipGuard guard{named(message.count()), std::nullopt, message.negated()};
    if (message.has_baseline()) guard.baseline = named(message.baseline());
    return guard;
  }
  [[nodiscard]] std::vector<std::pair<std::string, NodeKind>> body(
      const google::protobuf::RepeatedPtrField<v1::Stage>& stages) const {
    std::vector<std::pair<std::string, NodeKind>> made;
    for (const v1::Stage& stage : stages) {
      if (stage.has_group()) {
        made.emplace_back("", Group{branches(stage.group())});
      } else {
        made.emplace_back(stage.node().name(), kind(stage.node()));
      }
    }
    return made;
  }
  [[nodiscard]] std::vector<BranchSpec> branches(const v1::Group& group) const {
    std::vector<BranchSpec> made;
    for (const v1::Branch& branch : group.branches()) {
      BranchSpec& spec = made.emplace_back();
      for (const v1::Node& node : branch.nodes()) spec.nodes.emplace_back(node.name(), kind(node));
    }
    return made;
  }

  const v1::GraphDescription& message_;
  const graph::Graph& graph_;
  std::map<std::uint32_t, Given> planes_;
  std::vector<std::function<Status()>> calls_;
  std::vector<std::shared_ptr<const ScratchPlane>> scratch_;  // by plane
};

// The callables by their numbers; each of the file is given, and nothing else is.
StatusOr<std::vector<std::function<Status()>>> callables_of(const GraphFile& file,
                                                            const LoadOptions& options) {
  std::vector<std::function<Status()>> calls(file.calls().size());
  for (const auto& [name, call] : options.calls) {
    const auto found = std::find(file.calls().begin(), file.calls().end(), name);
    if (found == file.calls().end()) {
      return Status(Reason::unknown_name,
                    "the file has no callable " + quote_name(name) +
                        (file.calls().empty() ? "; it needs none" : "; it has " + list_of(file.calls())));
    }
    calls[static_cast<std::size_t>(found - file.calls().begin())] = call;
  }
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i]) missing.push_back(file.calls()[i]);
  }
  if (missing.empty()) return calls;
  return Status(Reason::bad_binding, "the graph calls " + list_of(missing) +
                                         ", and a file holds no code of programs; give what each is to run "
                                         "(calls)");
}

// By plane of the file; those that were not given are made.
StatusOr<std::map<std::uint32_t, Given>> arrays_of(const Session& session, const GraphFile& file,
                                                   const std::vector<saved::Place>& places,
                                                   const LoadOptions& options) {
  std::map<std::string_view, const saved::Place*> by_name;
  for (const saved::Place& place : places) {
    for (const std::string& name : place.plane.names) by_name.emplace(name, &place);
  }
  std::map<std::uint32_t, Given> given;
  for (const auto& [name, array] : options.planes) {
    const auto known = by_name.find(name);
    if (known == by_name.end()) {
      std::vector<std::string> names;
      for (const SavedPlane& plane : file.planes()) names.push_back(plane.name);
      return Status(Reason::unknown_name,
                    "the file has no plane " + quote_name(name) +
                        (names.empty() ? "; its nodes touch no array" : "; it has " + list_of(names)));
    }
    const saved::Place& place = *known->second;
    EAGLE_RETURN_IF_ERROR(check_fits(place, array));
    if (!given.emplace(place.index, Given{array, place.seen_alike}).second) {
      return Status(Reason::bad_binding, "plane " + quote_name(place.plane.name) +
                                             " is given twice, also as " + quote_name(name) +
                                             "; give it once");
    }
  }
  for (const saved::Place& place : places) {
    if (given.contains(place.index)) continue;
    const SavedPlane& plane = place.plane;
    EAGLE_ASSIGN_OR_RETURN(const std::uint64_t bytes, Session::bytes_for(plane.shape, plane.item_bytes));
    EAGLE_ASSIGN_OR_RETURN(auto buffer, session.allocate(std::max<std::uint64_t>(bytes, 1), plane.name));
    ArrayView array{buffer->data(),
                    plane.dtype,
                    plane.item_bytes,
                    plane.shape,
                    row_major_strides(plane.shape, plane.item_bytes),
                    false,
                    buffer};
    given.emplace(place.index, Given{std::move(array), place.seen_alike});
  }
  return given;
}

}  // namespace

StatusOr<Graph> Session::load(const GraphFile& file, const LoadOptions& options) const {
  const auto load = [&]() -> StatusOr<Graph> {
    EAGLE_ASSIGN_OR_RETURN(auto calls, callables_of(file, options));
    const std::vector<saved::Place> places = saved::planes_of(file.graph());
    EAGLE_ASSIGN_OR_RETURN(auto planes, arrays_of(*this, file, places, options));
    NamedArrays named;
    for (const saved::Place& place : places)
      named.emplace_back(place.plane.name, planes.at(place.index).array);
    GraphOptions made = options.graph;
    if (made.name.empty()) made.name = file.name();
    made.derivatives |= file.description().derivatives();
    Graph graph(*this, std::move(made));
    EAGLE_RETURN_IF_ERROR(Specs(file, std::move(planes), std::move(calls)).add_to(graph));
    graph.state_->loaded_planes = std::move(named);
    return graph;
  };
  StatusOr<Graph> loaded = load();
  if (!loaded.ok()) return loaded.status().within("load");
  return loaded;
}
StatusOr<Graph> Session::load(const GraphFile& file) const { return load(file, {}); }

NamedArrays Graph::planes() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->loaded_planes;
}

StatusOr<GraphFile> Graph::file() const {
  v1::GraphDescription description;
  std::map<std::uint64_t, ParamUpdate> updates;
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->stages.empty())
      return Status(Reason::graph_state, "save: this graph is empty; add nodes first");
    EAGLE_RETURN_IF_ERROR(state_->describe(state_->stages, description).status());
    for (const auto& [key, update] : state_->updated) {
      const auto& [node, leaf, name] = key;
      updates.emplace(update.first, ParamUpdate{{node, leaf, name}, update.second});
    }
  }
  std::vector<ParamUpdate> in_order;
  for (auto& [number, update] : updates) in_order.push_back(std::move(update));
  EAGLE_RETURN_IF_ERROR(saved::apply(in_order, description).within("save"));
  return GraphFile::of(description);
}

Status Graph::save(const std::string& path) const {
  EAGLE_ASSIGN_OR_RETURN(const GraphFile made, file());
  return made.write(path);
}

}  // namespace eagle
