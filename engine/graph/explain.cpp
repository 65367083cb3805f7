#include "engine/graph/explain.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/graph/leaf_maker.h"
#include "engine/graph/races.h"
#include "engine/graph/roles.h"
#include "engine/kernel/names.h"
#include "engine/plane/overlap.h"

namespace eagle::graph {
namespace {

using kernel::quote_name;

NodeName name_of(const std::vector<Leaf>& leaves, std::uint32_t index) {
  return {index, leaves[index].node->label};
}

// Adds what the two views share, if anything, and takes what that cost from `work`.
void meet(const Graph& graph, Hazard kind, const NamedView& source, const NamedView& destination, Work& work,
          std::vector<Meeting>& meetings) {
  const plane::Overlap overlap = plane::overlap(source.view, destination.view);
  work.left -= 1 + overlap.steps;
  if (!overlap.overlaps) return;
  Meeting meeting{kind, source.name, destination.name, graph.planes[source.view.plane].label, {}, 0, true, 0,
                  0};
  meeting.shared = plane::shared_bytes(source.view, destination.view);
  work.left -= meeting.shared.steps;
  meeting.exact = overlap.exact && meeting.shared.exact;
  if (meeting.exact) {
    const plane::SharedBytes from_the_end = plane::shared_bytes_from_the_end(source.view, destination.view);
    work.left -= from_the_end.steps;
    meeting.exact = from_the_end.exact;
    meeting.last = from_the_end.first;
  }
  // Of a count that stopped before it found anything, the byte that the test found is still true.
  if (meeting.shared.count == 0 && overlap.exact) meeting.shared.first = overlap.first;
  if (!meeting.exact) meeting.last = meeting.shared.first;
  meeting.first_in_source = meeting.shared.first - plane::extent(source.view).first;
  meeting.first_in_destination = meeting.shared.first - plane::extent(destination.view).first;
  const auto begins = static_cast<std::int64_t>(graph.planes[source.view.plane].begins);
  meeting.shared.first -= begins;
  meeting.last -= begins;
  meetings.push_back(std::move(meeting));
}

std::string refusal_of(const NodeName& source, const NodeName& destination, const Meeting& first) {
  return race_sentence({source.index, source.label, first.source_plane},
                       {destination.index, destination.label, first.destination_plane}, first.kind);
}

std::string samples(std::int64_t count) {
  return std::to_string(count) + (count == 1 ? " sample" : " samples");
}

std::string why_schedule(const Stage& stage, std::optional<StageSchedule> schedule) {
  using Kind = ScheduleObstacle::Kind;
  const std::string most = std::to_string(branch_tasks_max_samples);
  const ScheduleObstacle obstacle = obstacle_of(stage);
  switch (obstacle.kind) {
    case Kind::not_a_group:
      return "the stage is not a group, so the whole team works on its one node";
    case Kind::not_a_launch:
      return quote_name(obstacle.node->label) +
             " is not a launch of a kernel, and only those can run inside a branch's task";
    case Kind::too_many_samples:
      return quote_name(obstacle.node->label) + " has " + samples(as<KernelLaunch>(*obstacle.node)->samples) +
             ", more than " + most + ", which is enough for the whole team";
    case Kind::none:
      break;
  }
  const std::string fits = "a group of launches of at most " + most + " samples each";
  if (!schedule) return fits + ": branch_tasks, if the team has at least 2 threads";
  return *schedule == StageSchedule::branch_tasks ? fits + ", and the team has at least 2 threads"
                                                  : fits + ", but the team has only 1 thread";
}

std::string kind_of(const Graph& graph, const KernelLaunch& launch) {
  return "a launch of kernel " + quote_name(graph.kernels[launch.kernel]->name) + " over " +
         samples(launch.samples);
}

std::string kind_of(const Graph& /*graph*/, const HostNode& host) {
  switch (host.tier) {
    case HostTier::captured:
      return "a callable of the client";
    case HostTier::stream:
      return "a callable of the client, for a stream (on the CPU it runs like any other)";
    case HostTier::eager:
      return "a callable of the client that runs on the host at every launch";
    case HostTier::child:
      return "a CUDA graph that a package of the client captured";
    case HostTier::recorded:
      return "a callable of the client whose work on a GPU is captured (on the CPU it runs like any other)";
  }
  return "a callable of the client";
}

std::string kind_of(const Graph& /*graph*/, const Reduce& reduce) {
  const std::string rows = reduce.rows == 1 ? "" : std::to_string(reduce.rows) + " rows of ";
  return std::string(reduce.compensated ? "a compensated " : "a ") + std::string(kernel::name_of(reduce.op)) +
         " over " + rows + samples(reduce.samples);
}

std::string kind_of(const Graph& /*graph*/, const Copy& copy) {
  return "a copy of " + std::to_string(plane::touched_bytes(copy.source).count) +
         " bytes, element by element";
}

// No leaf is one.
std::string kind_of(const Graph& /*graph*/, const Group& group) {
  return "a group of " + std::to_string(group.branches.size()) + " branches";
}

std::string kind_of(const Graph& /*graph*/, const Conditional& conditional) {
  if (conditional.max_iterations == 0) return "a body that is skipped unless its guard is true";
  return "a body that repeats while its guard is true, at most " +
         std::to_string(conditional.max_iterations) + " times";
}

}  // namespace

std::string kind_of(const Graph& graph, const Node& node) {
  return visit_kind(node, [&](const auto& kind) { return kind_of(graph, kind); });
}

StatusOr<std::uint32_t> find_node(const std::vector<Leaf>& leaves, const NodeReference& node) {
  if (leaves.empty()) return Status(Reason::bad_value, "this graph is empty; add nodes first");
  const std::string range = "0 to " + std::to_string(leaves.size() - 1);
  if (const auto* const index = std::get_if<std::uint32_t>(&node)) {
    if (*index < leaves.size()) return *index;
    return Status(Reason::bad_value,
                  "there is no node " + std::to_string(*index) + "; this graph has nodes " + range);
  }
  const std::string& label = std::get<std::string>(node);
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < leaves.size() && found.size() < 8; ++i) {
    if (leaves[i].node->label == label) found.push_back(i);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return Status(Reason::bad_value, "there is no node " + quote_name(label) +
                                         "; node_labels() lists them, and an index (" + range +
                                         ") will do too");
  }
  std::string indices;
  for (const std::uint32_t index : found) indices += (indices.empty() ? "" : ", ") + std::to_string(index);
  return Status(Reason::bad_value, "several nodes are called " + quote_name(label) +
                                       "; say which by its index: " + indices +
                                       (found.size() == 8 ? ", ..." : ""));
}

std::vector<Meeting> meetings_between(const Graph& graph, const Leaf& source, const Leaf& destination,
                                      Work& work) {
  std::vector<Meeting> meetings;
  const auto add = [&](Hazard kind, const NamedView& view, const std::vector<NamedView>& others) {
    for (const NamedView& other : others) {
      if (work.left <= 0) return;
      meet(graph, kind, view, other, work, meetings);
    }
  };
  for (const NamedView& written : source.touches.writes) {
    add(Hazard::raw, written, destination.touches.reads);
    add(Hazard::waw, written, destination.touches.writes);
  }
  for (const NamedView& read : source.touches.reads) add(Hazard::war, read, destination.touches.writes);
  return meetings;
}

std::vector<Edge> edges_of(const std::vector<Meeting>& meetings, std::uint32_t source,
                           std::uint32_t destination) {
  std::vector<Edge> edges;
  for (const Meeting& meeting : meetings) {
    Edge edge{source, destination, meeting.source_plane, meeting.kind};
    if (std::ranges::find(edges, edge) == edges.end()) edges.push_back(std::move(edge));
  }
  return edges;
}

StatusOr<PairExplanation> explain(const Graph& graph, const NodeReference& node, const NodeReference& other) {
  const std::vector<Leaf> all = leaves(graph);
  EAGLE_ASSIGN_OR_RETURN(std::uint32_t first, find_node(all, node));
  EAGLE_ASSIGN_OR_RETURN(std::uint32_t second, find_node(all, other));
  if (first == second) {
    return Status(Reason::bad_value, "node " + std::to_string(first) + " " +
                                         quote_name(all[first].node->label) +
                                         " does not wait for itself; name two nodes, or this one alone");
  }
  if (second < first) std::swap(first, second);
  Work work{explain_work_limit};
  PairExplanation out{name_of(all, first), name_of(all, second), Relation::independent, {}, {}};
  out.meetings = meetings_between(graph, all[first], all[second], work);
  if (work.left <= 0) {
    return Status(Reason::graph_limit, "the planes of these nodes meet in more ways than " +
                                           std::to_string(explain_work_limit) + " steps can compare");
  }
  const bool met = !out.meetings.empty();
  if (siblings(all, first, second)) {
    out.relation = met ? Relation::racing : Relation::siblings;
  } else {
    out.relation = met ? Relation::ordered : Relation::independent;
  }
  if (met) out.refusal = refusal_of(out.source, out.destination, out.meetings.front());
  return out;
}

StatusOr<NodeExplanation> explain(const Graph& graph, const NodeReference& node,
                                  const std::vector<StageSchedule>& schedule) {
  const std::vector<Leaf> all = leaves(graph);
  EAGLE_ASSIGN_OR_RETURN(const std::uint32_t index, find_node(all, node));
  const Leaf& leaf = all[index];
  NodeExplanation out;
  out.node = name_of(all, index);
  out.kind = kind_of(graph, *leaf.node);
  out.stage = leaf.stage;
  Work bytes{explain_work_limit};
  EAGLE_ASSIGN_OR_RETURN(out.planes, explain_planes(graph, *leaf.node, bytes));
  if (leaf.stage < schedule.size()) out.schedule = schedule[leaf.stage];
  out.schedule_why = why_schedule(graph.stages[leaf.stage], out.schedule);

  Work work{explain_work_limit};
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (i == index || siblings(all, i, index) || work.left <= 0) continue;
    const std::uint32_t first = std::min(i, index);
    const std::uint32_t last = std::max(i, index);
    std::vector<Edge> edges = edges_of(meetings_between(graph, all[first], all[last], work), first, last);
    if (edges.empty()) continue;
    out.neighbours.push_back(name_of(all, i));
    std::vector<Edge>& side = i < index ? out.in : out.out;
    std::move(edges.begin(), edges.end(), std::back_inserter(side));
  }
  if (work.left <= 0) {
    return Status(Reason::graph_limit, "the planes of " + quote_name(leaf.node->label) +
                                           " meet those of other nodes in more ways than " +
                                           std::to_string(explain_work_limit) + " steps can compare");
  }
  return out;
}

StatusOr<Explanation> explain(const Graph& graph, const NodeReference& node,
                              const std::optional<NodeReference>& other,
                              const std::vector<StageSchedule>& schedule) {
  if (other) {
    EAGLE_ASSIGN_OR_RETURN(PairExplanation pair, explain(graph, node, *other));
    return Explanation(std::move(pair));
  }
  EAGLE_ASSIGN_OR_RETURN(NodeExplanation alone, explain(graph, node, schedule));
  return Explanation(std::move(alone));
}

}  // namespace eagle::graph
