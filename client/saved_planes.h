// Descriptions of graphs without a session: what is left of planes when nobody's memory is meant.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eagle/client/graph_file.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}
namespace eagle::v1 {
class GraphDescription;
class Node;
class Stage;
}  // namespace eagle::v1

namespace eagle::saved {

// The description with other planes: views that share bytes see one private plane, as large as what they see
// together, and scratch planes stay. Numbers of callables count from 0. GRAPH_LIMIT, VIEW_OUTSIDE_PLANE.
StatusOr<v1::GraphDescription> detached(const v1::GraphDescription& description);

// A plane of a file, and where it is among the planes of the description.
struct Place {
  SavedPlane plane;
  std::uint32_t index = 0;
  // Of an array that takes its place, when every node sees it alike: its strides may be any. Else they are
  // row-major.
  bool seen_alike = true;
};
// The private planes, in their order. A plane is called what its first node calls it, where no other plane is
// called so; else "node.name", "index.name" or "plane K".
std::vector<Place> planes_of(const graph::Graph& graph);

// Of each callable, in the order of the nodes.
std::vector<std::string> calls_of(const graph::Graph& graph);
// What they declare, likewise; `places` are those of the graph.
std::vector<std::vector<SavedView>> call_arrays_of(const graph::Graph& graph,
                                                   const std::vector<Place>& places);

// Numbers of Params that were given after the build, in order (a later one wins), take the place of the old
// ones.
Status apply(const std::vector<graph::ParamUpdate>& updates, v1::GraphDescription& description);

// Every node in the order of addresses: each before those of its body. Of groups their nodes alone.
void for_each_node(google::protobuf::RepeatedPtrField<v1::Stage>& stages,
                   const std::function<void(v1::Node&)>& visit);

}  // namespace eagle::saved
