// Explain: why one node waits for another, and what a node touches and how it runs.
//
// The same facts as edges, races and schedule, with their reasons. Works on racing and unbuilt graphs. The
// words for people are made of this in engine/view/explain_text.h, in that one place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/status.h"
#include "engine/graph/edges.h"
#include "engine/graph/graph.h"
#include "engine/graph/meetings.h"
#include "engine/graph/schedule.h"
#include "engine/plane/shared_bytes.h"

namespace eagle::v1 {
class Explanation;
class NodeReference;
}  // namespace eagle::v1

namespace eagle::graph {

// A node of the graph's own stages: its leaf index, or its label.
using NodeReference = std::variant<std::uint32_t, std::string>;

struct NodeName {
  std::uint32_t index = 0;
  std::string label;
};

// One pair of planes that share bytes, of which at least one is written.
struct Meeting {
  Hazard kind = Hazard::raw;
  std::string source_plane;  // each node's own name
  std::string destination_plane;
  std::string memory;         // the label of the region
  plane::SharedBytes shared;  // `first` is a byte of the region, from where its array begins
  std::int64_t last = 0;      // the highest byte of the region that they share, or `first` if not `exact`
  bool exact = true;  // false: a search was capped, so "they share bytes" or the count is the safe answer
  std::int64_t first_in_source = 0;  // `shared.first` from the lowest byte of each view
  std::int64_t first_in_destination = 0;
};

enum class Relation : std::uint8_t {
  independent = 1,  // no byte in common that either writes
  ordered = 2,      // the destination waits for the source
  siblings = 3,     // in different branches of one group, and free to run at the same time
  racing = 4,       // in different branches of one group, and refused by build
};

struct PairExplanation {
  NodeName source;  // the one added first
  NodeName destination;
  Relation relation = Relation::independent;
  std::vector<Meeting> meetings;  // in the order of edges
  std::string refusal;            // what build says of them as siblings; empty without meetings
};

struct PlaneExplanation {
  std::string plane;
  plane::View view;
  bool read = false;
  bool written = false;
  std::string why;
  std::string memory;
  std::int64_t first = 0;    // the lowest byte of the region that it touches
  plane::SharedBytes bytes;  // how many
};

struct NodeExplanation {
  NodeName node;
  std::string kind;  // "a launch of kernel 'affine' over 8 samples"
  std::uint32_t stage = 0;
  std::vector<PlaneExplanation> planes;
  std::optional<StageSchedule> schedule;  // empty before the build
  std::string schedule_why;
  std::string execution;  // how its kernels run, a line a function, from whoever runs them; may be empty
  std::vector<Edge> in;
  std::vector<Edge> out;
  std::vector<NodeName> neighbours;  // whom these edges name, by index
};

using Explanation = std::variant<PairExplanation, NodeExplanation>;

// What a node of the graph is, in words: "a launch of kernel 'affine' over 8 samples".
std::string kind_of(const Graph& graph, const Node& node);

// BAD_VALUE for an index or a label that is not there, and for one that several nodes have.
StatusOr<std::uint32_t> find_node(const std::vector<Leaf>& leaves, const NodeReference& node);

// Every way in which the two leaves (of `graph`, any scope) meet, in the order of their edges. Stops once
// `work` is spent.
std::vector<Meeting> meetings_between(const Graph& graph, const Leaf& source, const Leaf& destination,
                                      Work& work);
// The edges that `edges` has for such a pair, if they are not siblings.
std::vector<Edge> edges_of(const std::vector<Meeting>& meetings, std::uint32_t source,
                           std::uint32_t destination);

// In either order of the two. BAD_VALUE also for a node and itself.
StatusOr<PairExplanation> explain(const Graph& graph, const NodeReference& node, const NodeReference& other);
// `schedule`: one a stage once the graph is built. GRAPH_LIMIT where comparing the node with all others would
// take more than `explain_work_limit` steps.
StatusOr<NodeExplanation> explain(const Graph& graph, const NodeReference& node,
                                  const std::vector<StageSchedule>& schedule);

// The one or the other, for whoever is asked for either.
StatusOr<Explanation> explain(const Graph& graph, const NodeReference& node,
                              const std::optional<NodeReference>& other,
                              const std::vector<StageSchedule>& schedule);

constexpr std::int64_t explain_work_limit = 5'000'000;

StatusOr<NodeReference> read(const v1::NodeReference& message);
void to_message(const Explanation& explanation, v1::Explanation& message);  // without its text

}  // namespace eagle::graph
