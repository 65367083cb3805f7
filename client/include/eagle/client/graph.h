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

#include "eagle/client/future.h"
#include "eagle/client/gpu_work.h"
#include "eagle/client/run.h"
#include "eagle/client/session.h"
#include "engine/base/status.h"
#include "engine/graph/address.h"
#include "engine/graph/edges.h"
#include "engine/graph/explain.h"
#include "engine/graph/graph.h"
#include "engine/graph/scratch.h"
#include "engine/kernel/transform.h"
#include "engine/run/execution.h"
#include "engine/view/figure.h"
#include "engine/view/picture.h"

namespace eagle::v1 {
class GraphDescription;
}

namespace eagle {

struct Backing;
class GraphFile;

using graph::Edge;
using graph::Hazard;
using graph::HostTier;
using graph::NodeReference;  // an index, or a label
using PictureFormat = view::Format;
using run::ExecutedGroup;
using run::ExecutedNode;
using run::Execution;

// The planes a node declares, by name, in order.
using NamedArrays = std::vector<std::pair<std::string, ArrayView>>;

// A callable of this process, run in the thread that calls `launch`. An error it returns, or an exception it
// throws, ends the launch and reaches the caller of `launch` unchanged.
struct Opaque {
  std::function<Status()> call;
  NamedArrays reads;
  NamedArrays writes;
  HostTier tier = HostTier::captured;
  std::shared_ptr<const GpuWork> on_gpu = nullptr;
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

// The elements of one array into another of the same shape, with any strides; element types are converted as
// kernels convert them. Its planes are `src` and `dst`.
// With an index (one int64 or int32 element) one of the two has one more axis, the first, and the row of that
// number is copied from or to; a number outside takes the nearest row.
struct Copy {
  ArrayView source;
  ArrayView destination;
  std::optional<ArrayView> index = std::nullopt;
};

// Branches that may run at the same time, as one step of a conditional's body or as an item of a branch. It
// has no name there; its nodes have.
struct BranchSpec;
struct Group {
  std::vector<BranchSpec> branches;
};

// Belongs to one graph: adding it to a second one is refused (CONDITIONAL_IN_USE) while the first lives.
struct Conditional;
// All of `x`, shape (N,) or (rows, N), into one element, or one a row, of `out`. Sums of reals have one fixed
// order (docs/manual/accumulation.md); `compensated` ones keep what rounding loses and add it at the end.
using kernel::ReduceOp;
struct Reduce {
  ArrayView x;
  ArrayView out;
  ReduceOp op = ReduceOp::sum;
  bool compensated = false;
};
struct ReduceOptions {
  ReduceOp op = ReduceOp::sum;
  bool compensated = false;
};
Reduce reduce(ArrayView x, ArrayView out, ReduceOptions options = {});

// What a node can be. Bodies of conditionals are shared so that values stay cheap to copy.
using NodeKind = std::variant<BoundPlan, Opaque, std::shared_ptr<const Conditional>, Reduce, Copy, Group>;
struct Conditional {
  SkipGuard guard;
  std::vector<std::pair<std::string, NodeKind>> body;  // (name, node), in order
  std::optional<std::int64_t> max_iterations;          // of a repeat_while; empty: skippable
  std::optional<ArrayView> iterations;                 // of a repeat_while
  mutable std::weak_ptr<const void> graph;             // whose it is; kept by Graph
};
NodeKind copy(ArrayView source, ArrayView destination, std::optional<ArrayView> index = std::nullopt);
NodeKind skippable(std::vector<std::pair<std::string, NodeKind>> body, SkipGuard guard);
// `iterations`: one int64 or int32 element that the loop writes (the plane `iterations` of its edges): the
// number of bodies that have run, so 0, 1, 2, ... inside them, and their number for later nodes. Nodes of the
// body may read it and must not write it.
NodeKind repeat_while(std::vector<std::pair<std::string, NodeKind>> body, SkipGuard guard,
                      std::int64_t max_iterations, std::optional<ArrayView> iterations = std::nullopt);

// One branch of a group: nodes that run in order.
struct BranchSpec {
  std::vector<std::pair<std::string, NodeKind>> nodes;
};

// New numbers and new arrays, by the names of engine/graph/address.h: {"a"}, {"node.a"}, {"node", {}, "a"}.
using graph::Address;
using graph::ParamUpdate;
struct PlaneUpdate {
  Address address;
  ArrayView array;
};

// Refused where a graph would refuse the plan as a node, in the words of the plan alone; a derivative is a
// plan like any other here.
Status check_plan(const Session& session, const BoundPlan& plan);

class Record;
class Reverse;
struct ReverseOptions;

struct GraphOptions {
  std::string name;
  bool recorded = false;  // launches keep what a reverse pass needs (reverse.h)
  // Takes derivatives of kernels (engine/kernel/diff), whose planes mean what their maker knows: for
  // launching one by itself, and for reverse passes. Other graphs refuse them by name.
  bool derivatives = false;
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

  // An array that only kernels and copies of this graph touch: it takes part in edges and pictures like any
  // other, and the engine makes memory for it where it needs some. It holds nothing between launches.
  StatusOr<ArrayView> scratch(const Shape& shape, DType dtype, std::string_view name = {});

  // Refuses races, compiles, binds. Once; a failed build leaves the graph open. `dispatch`: how dispatch
  // groups that their author left open run, switch_ or predicated; an empty name is all of them. A built
  // graph is one fixed structure, so samples are not sorted by branch in it, and segmented is refused.
  Status build(const std::vector<kernel::PolicyChoice>& dispatch = {});
  StatusOr<LaunchReport> launch(std::int64_t n = 1, const LaunchOptions& options = {});
  // The same, for who launches often: what it reports `report` tells where it is asked for.
  Status replay(std::int64_t n = 1, const LaunchOptions& options = {});
  // Whether the thread that launches may itself compute for longer than a millisecond or so. Through a daemon
  // it waits instead, and says so (LaunchOptions::waiting). Without a lock.
  [[nodiscard]] bool computes_long(std::int64_t n = 1) const;
  // Through a daemon, and in process on a GPU that runs all of the graph: returns once the launch is queued,
  // and the graph is busy until `synchronize`, where host nodes run and errors come out; `options` are those
  // of `synchronize` then. Else it is a launch.
  Status enqueue(std::int64_t n = 1, const LaunchOptions& options = {});
  // Of the last launch that was whole; of none, before the first.
  [[nodiscard]] LaunchReport report() const;
  // The report of the launch that was enqueued, or of the last one where none is in flight.
  StatusOr<LaunchReport> synchronize(const LaunchOptions& options = {});
  // A launch in a thread of its own, in which the graph is busy. Host nodes run in the session's one callback
  // thread. The graph may go before the future does.
  Future<LaunchReport> launch_async(std::int64_t n = 1, const LaunchOptions& options = {});
  // Stops the launch that is in flight, if there is one, between two kernels or inside a loop of one.
  void cancel() const;

  // New numbers for Params, without a build: all of them or, where one is refused, none.
  Status update(const std::vector<ParamUpdate>& params);
  // Other arrays of the same dtype and shape for kernels and copies. Races and overlaps are looked at again;
  // where something is refused nothing changes.
  Status rebind(const std::vector<PlaneUpdate>& planes);

  [[nodiscard]] bool built() const;
  // Empty before the build; then one of "work_share", "branch_tasks" a stage, or what docs/manual/gpu.md
  // lists.
  [[nodiscard]] std::vector<std::string> schedule() const;
  // Where it runs: "cpu", "cuda:0"; empty before the build.
  [[nodiscard]] std::string backend() const;
  // How each dispatch group of each node runs; empty before the build.
  struct DispatchRow {
    std::string node;  // label
    std::string group;
    kernel::DispatchPolicy policy = kernel::DispatchPolicy::switch_;
  };
  StatusOr<std::vector<DispatchRow>> dispatch() const;
  // The graph as it stands, which edges, pictures and explanations are made of; later adds leave it as it is.
  StatusOr<std::shared_ptr<const graph::Graph>> description() const;
  StatusOr<std::vector<Edge>> edges() const;
  [[nodiscard]] std::vector<std::string> node_labels() const;
  // Pictures, built or not, racing or not; all formats show the same.
  StatusOr<std::string> picture(PictureFormat format) const;
  StatusOr<std::string> show() const;        // text
  StatusOr<std::string> to_mermaid() const;  // flowchart TD
  StatusOr<std::string> to_dot() const;      // Graphviz
  StatusOr<std::string> to_svg() const;      // one file, nothing outside it
  // Coordinates, for programs that draw themselves.
  StatusOr<view::Figure> figure() const;
  // Why one of two nodes waits for the other, in either order; or what a node touches and how it runs. Print
  // them with `view::to_text` (engine/view/explain_text.h). BAD_VALUE for nodes that are not there.
  StatusOr<graph::PairExplanation> explain(const NodeReference& node, const NodeReference& other) const;
  StatusOr<graph::NodeExplanation> explain(const NodeReference& node) const;
  // The graph without its arrays, for other programs (graph_file.h); built or not, with the numbers that
  // Params have now. GRAPH_STATE for an empty graph, GRAPH_LIMIT.
  [[nodiscard]] StatusOr<GraphFile> file() const;
  // As a file; one that is there is replaced. SYSTEM.
  [[nodiscard]] Status save(const std::string& path) const;
  // Of a graph that Session::load made: its arrays, given and made, by the names of the file's planes.
  [[nodiscard]] NamedArrays planes() const;

  // What the graph did lately in its daemon: launches, their turns on the team, host calls and builds, as
  // JSON in Chrome's trace-event format, which chrome://tracing and ui.perfetto.dev show. GRAPH_STATE before
  // the build, and for a session in this process.
  StatusOr<std::string> timeline() const;

  // The same as the host itself says from what it was sent: equal to picture(format), and to the text of
  // explain(). They need a build.
  StatusOr<std::string> host_picture(PictureFormat format = PictureFormat::text) const;
  StatusOr<std::string> host_explanation(const NodeReference& node,
                                         const std::optional<NodeReference>& other = std::nullopt) const;
  [[nodiscard]] const Session& session() const;
  // As GraphOptions::recorded; what it is at the build counts.
  void set_recorded(bool recorded);
  // Of the last launch, whichever it is when somebody looks. GRAPH_STATE for a graph that is not built, or
  // was built without recording.
  [[nodiscard]] StatusOr<Record> record() const;
  // What became of the scratch planes; empty before the build.
  [[nodiscard]] graph::ScratchLayout scratch_layout() const;
  // How the launches are executed (docs/manual/execution.md); empty before the build.
  [[nodiscard]] Execution execution() const;

private:
  friend StatusOr<Reverse> reverse(const Record& record, const std::vector<std::string>& seeds,
                                   const ReverseOptions& options);
  friend class Session;
  struct State;
  explicit Graph(std::shared_ptr<State> state) : state_(std::move(state)) {}
  // A built graph made of its description. `backing` is the description's.
  static StatusOr<Graph> of_description(const Session& session, const v1::GraphDescription& description,
                                        Backing backing);
  [[nodiscard]] view::PictureOptions picture_options() const;
  std::shared_ptr<State> state_;
};

}  // namespace eagle
