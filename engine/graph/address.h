// Addresses: what people call an argument of a node when they give it a new number or another plane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/param.h"

namespace eagle::v1 {
class ParamUpdate;
}

namespace eagle::graph {

// `name` alone: the argument of that name that one node has, or that all nodes have that have any; or
// "label.name", of one node. With `node` (its label) or `leaf` (its index): of that node.
struct Address {
  std::string node;
  std::optional<std::uint32_t> leaf;
  std::string name;
};

// What an address means. Nodes are counted in the order of a walk through the graph, each before the nodes of
// its body; launches likewise, in the order of RunPlan::launches.
struct Target {
  std::uint32_t node = 0;
  std::uint32_t launch = 0;    // of a kernel launch
  std::uint32_t argument = 0;  // of a kernel launch: index into the kernel's; of a copy: 0 `src`, 1 `dst`
};

enum class Wanted { param, plane };

// The arguments that the address means, at least one. UNKNOWN_NAME lists the candidates where there is none,
// or where it could be several nodes' and not all have it. `method` begins the message.
StatusOr<std::vector<Target>> resolve(const Graph& graph, const Address& address, Wanted wanted,
                                      std::string_view method);

struct ParamUpdate {
  Address address;
  Number value;
};
void to_message(const ParamUpdate& update, v1::ParamUpdate& message);
StatusOr<ParamUpdate> read_update(
    const v1::ParamUpdate& message);  // MALFORMED_GRAPH for one without a number

// Of one call: each may name every node.
constexpr std::size_t most_updates = 4096;
// The bits that these updates give, in order (a later one wins). Nothing is changed. GRAPH_LIMIT.
StatusOr<std::vector<std::pair<Target, std::uint64_t>>> resolve_updates(
    const Graph& graph, const std::vector<ParamUpdate>& updates);

// Whether `fresh` is the same graph over other planes: kernels, nodes, labels, numbers of samples, dtypes and
// shapes are equal. WRONG_SHAPE, WRONG_DTYPE or MALFORMED_GRAPH names the node and the plane that is not.
Status check_same_structure(const Graph& built, const Graph& fresh);

}  // namespace eagle::graph
