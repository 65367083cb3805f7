// The in-memory form of a graph: what `read()` makes of a GraphDescription and everything else uses.
//
// A Graph that `read` returned satisfies every rule of docs/manual/graph_model.md that can be checked
// node by node; races between branches are a question of their own (`races.h`), so that the edges and
// the picture of a racing graph can still be looked at. Plain data; share it between threads as const.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"
#include "engine/kernel/verify.h"
#include "engine/plane/layout.h"
#include "engine/plane/view.h"

namespace eagle::v1 {
class GraphDescription;
class KernelLaunch;
class PlaneDeclaration;
}  // namespace eagle::v1

namespace eagle::graph {

struct PlaneId {
  std::uint64_t id = 0;
  std::uint64_t generation = 0;
  friend bool operator==(const PlaneId&, const PlaneId&) = default;
};

struct Plane {
  std::optional<PlaneId> shared;  // empty: the client's private memory, or scratch
  bool scratch = false;           // memory of the graph itself, made by the engine
  std::uint64_t bytes = 0;
  std::string label;
  std::uint64_t begins = 0;  // the array of that label, from which bytes are counted for people; <= bytes
};

struct NamedView {
  std::string name;
  plane::View view;
};

// One argument of a launch: a view of a plane, or a number as the bits of the argument's type.
struct Bound {
  std::optional<plane::View> view;
  plane::Layout layout;    // of `view`
  std::uint64_t bits = 0;  // of a param
};

struct KernelLaunch {
  std::uint32_t kernel = 0;      // index into Graph::kernels
  std::vector<Bound> arguments;  // one an argument of the kernel, in its order
  std::int64_t samples = 0;
};

// On a GPU the first and the third are called with values between two CUDA graphs. The others work there
// themselves: what a callable enqueues on a stream at each launch, a CUDA graph that a package captured, and
// one that is captured from what a callable enqueues.
enum class HostTier : std::uint8_t { captured = 1, stream = 2, eager = 3, child = 4, recorded = 5 };
constexpr bool works_on_gpu(HostTier tier) {
  return tier == HostTier::stream || tier == HostTier::child || tier == HostTier::recorded;
}

struct HostNode {
  std::uint32_t call = 0;  // the client's number
  HostTier tier = HostTier::captured;
  std::vector<NamedView> reads;
  std::vector<NamedView> writes;
};

// All of `x`, reduced in one fixed order (engine/run/reduction). `rows` rows of `samples` each, contiguous,
// become the `rows` elements of `out`.
struct Reduce {
  NamedView x;
  NamedView out;
  kernel::ReduceOp op = kernel::ReduceOp::sum;
  kernel::Scalar scalar = kernel::Scalar::f64;  // of both
  bool compensated = false;
  std::int64_t rows = 1;
  std::int64_t samples = 0;  // at least 1
};

struct Guard {
  NamedView count;  // one integer or bool element
  std::optional<NamedView> baseline;
  bool negated = false;
};

// Element by element, from one view to another of the same shape. With an index one of the two has one more
// axis, the first one, and the index says which of its rows takes part.
struct Copy {
  plane::View source;
  plane::View destination;
  std::optional<NamedView> index = std::nullopt;  // one i64 or i32 element

  // Which of the two is the stack of rows that the index chooses from; only with an index.
  [[nodiscard]] bool into_stack() const { return destination.shape.size() > source.shape.size(); }
};
constexpr std::string_view copy_source_name = "src";
constexpr std::string_view copy_destination_name = "dst";

struct Stage;

struct Conditional {
  Guard guard;
  std::vector<Stage> body;
  std::int64_t max_iterations = 0;  // 0: skippable (at most once); else repeat_while
  // Of a repeat_while: one i64 or i32 element that the loop writes, the number of bodies run so far. No node
  // of the body writes it.
  std::optional<NamedView> iterations = std::nullopt;
};

struct Branch;

// A group as an item of a branch. It has no label and is no leaf: its nodes are, as if it were a stage.
struct Group {
  std::vector<Branch> branches;
};

// What is large and rare lies apart: a graph has thousands of launches.
using NodeKind = std::variant<KernelLaunch, HostNode, Group, std::shared_ptr<const Conditional>,
                              std::shared_ptr<const Reduce>, std::shared_ptr<const Copy>>;

struct Node {
  std::string label;  // the given name, else the kernel's, else the kind's
  NodeKind kind;      // no pointer of it is null
  kernel::Location location;
};

// What the node is, as a T; null where it is something else.
template <typename T>
const T* as(const Node& node) {
  if constexpr (std::is_same_v<T, Conditional> || std::is_same_v<T, Reduce> || std::is_same_v<T, Copy>) {
    const auto* const apart = std::get_if<std::shared_ptr<const T>>(&node.kind);
    return apart == nullptr ? nullptr : apart->get();
  } else {
    return std::get_if<T>(&node.kind);
  }
}

// Calls `visit` with what the node is.
template <typename Visit>
auto visit_kind(const Node& node, const Visit& visit) {
  return std::visit(
      [&]<typename T>(const T& kind) {
        if constexpr (requires { *kind; }) {
          return visit(*kind);
        } else {
          return visit(kind);
        }
      },
      node.kind);
}

struct Branch {
  std::vector<Node> nodes;
};

// One branch: a plain node (`group` false). Two or more: a group.
struct Stage {
  std::vector<Branch> branches;
  bool group = false;
};

// Visits the leaves of some branches in order: their nodes, and those of groups in them; not those of bodies.
template <typename Visit>
void for_each_leaf(std::span<const Branch> branches, const Visit& visit) {
  for (const Branch& branch : branches) {
    for (const Node& node : branch.nodes) {
      if (const auto* const group = as<Group>(node)) {
        for_each_leaf(std::span<const Branch>(group->branches), visit);
      } else {
        visit(node);
      }
    }
  }
}

struct Graph {
  std::string name;
  std::vector<std::shared_ptr<const kernel::Kernel>> kernels;
  std::vector<Plane> planes;
  std::vector<Stage> stages;
  std::vector<std::string> source_files;
};

struct Limits {
  std::uint32_t nodes = 100'000;      // conditional bodies included      (graph_nodes)
  std::uint32_t planes = 100'000;     //                                  (graph_planes)
  std::uint32_t depth = 16;           // of nested conditionals and groups (graph_depth)
  std::uint32_t name_bytes = 10'240;  // of one name                      (graph_name_bytes)
  kernel::Limits kernel;
};

enum class PrivateKernelPlanes {
  allowed,  // in process: a kernel may run over the caller's own arrays
  refused,  // in the daemon: PRIVATE_ARRAY, with the ways out
};

// Verifies a description node by node: kernels, views inside planes, dtypes, shapes, equal sample counts
// within a launch, each argument bound once, guards of one integer cell, groups of two or more non-empty
// branches, caps of at least 1, counters of loops that their bodies leave alone, partial overlap of an input
// and an output of one launch, copies between views of one shape (but for an index) that share no byte,
// scratch planes out of host nodes' reach, no derivative kernels. A rejected description leaves nothing
// behind. Errors name node label and index, argument, expected, found, cure.
StatusOr<Graph> read(const v1::GraphDescription& message, PrivateKernelPlanes private_planes,
                     const Limits& limits = {});

// The same rules for one launch and one plane declaration, for runs (engine/step).
StatusOr<KernelLaunch> read_launch(const v1::KernelLaunch& message,
                                   const std::vector<std::shared_ptr<const kernel::Kernel>>& kernels,
                                   const std::vector<Plane>& planes, std::string_view where,
                                   PrivateKernelPlanes private_planes);
StatusOr<Plane> read_plane(const v1::PlaneDeclaration& message, std::string_view where);

}  // namespace eagle::graph
