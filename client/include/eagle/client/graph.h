// Graph: nodes over arrays, built once and replayed.
//
//   eagle::Graph g(session, {.name = "step"});
//   Status s = g.add({affine, {{"x", x}, {"y", y}, {"a", 2.0}, {"b", 1.0}}}, "affine");
//   s = g.add_node(eagle::opaque([&] { return log(y); }, {.reads = {{"y", y}}}), "log");
//   s = g.build();
//   StatusOr<LaunchReport> report = g.launch(100);
//
// Edges are derived from the bytes each node touches; branches that could race are refused at `build`.
// A graph holds every array it uses. `build`, `launch` and the adds are for one caller at a time: a
// second one, from another thread or from a host node, gets BUSY. Looking (`edges`, `show`, ...) is always
// allowed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "eagle/client/run.h"
#include "eagle/client/session.h"
#include "engine/base/status.h"
#include "engine/graph/edges.h"
#include "engine/graph/graph.h"

namespace eagle {

using graph::Edge;
using graph::Hazard;
using graph::HostTier;

// The planes a node declares, by name, in order.
using NamedArrays = std::vector<std::pair<std::string, ArrayView>>;

// A callable of this process, run in the thread that calls `launch`. An error it returns, or an exception it
// throws, ends the launch and reaches the caller of `launch` unchanged.
struct Opaque {
  std::function<Status()> call;
  NamedArrays reads;
  NamedArrays writes;
  HostTier tier = HostTier::captured;
};
struct Planes {
  NamedArrays reads;
  NamedArrays writes;
};
Opaque opaque(std::function<Status()> call, Planes planes, HostTier tier = HostTier::captured);

// True when the cell is not 0 (or differs from the baseline's cell); looked at when the graph gets there.
// The views have one element of an integer or bool type.
struct SkipGuard {
  std::pair<std::string, ArrayView> count;
  std::optional<std::pair<std::string, ArrayView>> baseline;
  bool negated = false;
};

// Belongs to one graph: adding it to a second one is refused (CONDITIONAL_IN_USE) while the first lives.
struct Conditional;
// What a node can be. Bodies of conditionals are shared so that values stay cheap to copy.
using NodeKind = std::variant<BoundPlan, Opaque, std::shared_ptr<const Conditional>>;
struct Conditional {
  SkipGuard guard;
  std::vector<std::pair<std::string, NodeKind>> body;  // (name, node), in order
  std::optional<std::int64_t> max_iterations;          // of a repeat_while; empty: skippable
  mutable std::weak_ptr<const void> graph;             // whose it is; kept by Graph
};
NodeKind skippable(std::vector<std::pair<std::string, NodeKind>> body, SkipGuard guard);
NodeKind repeat_while(std::vector<std::pair<std::string, NodeKind>> body, SkipGuard guard,
                      std::int64_t max_iterations);

// One branch of a group: nodes that run in order.
struct BranchSpec {
  std::vector<std::pair<std::string, NodeKind>> nodes;
};

struct GraphOptions {
  std::string name;
};

class Graph {
public:
  explicit Graph(Session session, GraphOptions options = {});
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;

  // Checked as they are added; a failed add leaves the graph as it was.
  Status add(BoundPlan plan, std::string_view name = {});
  Status add_node(NodeKind node, std::string_view name = {});
  Status add_group(std::vector<BranchSpec> branches);

  // Refuses races, compiles, binds. Once; a failed build leaves the graph open.
  Status build();
  StatusOr<LaunchReport> launch(std::int64_t n = 1, const LaunchOptions& options = {});

  [[nodiscard]] bool built() const;
  // Empty before the build; then one of "work_share", "branch_tasks" a stage.
  [[nodiscard]] std::vector<std::string> schedule() const;
  StatusOr<std::vector<Edge>> edges() const;
  [[nodiscard]] std::vector<std::string> node_labels() const;
  StatusOr<std::string> show() const;  // the text picture
  // The picture as the host itself draws it from what it was sent; equal to show(). Needs a build.
  StatusOr<std::string> host_picture() const;
  [[nodiscard]] const Session& session() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace eagle
