// Reads a graph: its kernels, planes and stages, and the rules of each node.
#include <unordered_map>
#include <utility>

#include "eagle/v1/graph.pb.h"
#include "engine/graph/graph.h"
#include "engine/graph/wire.h"
#include "engine/kernel/names.h"

namespace eagle::graph {
namespace {

using kernel::quote_name;
using StageMessages = google::protobuf::RepeatedPtrField<v1::Stage>;
using NamedViewMessages = google::protobuf::RepeatedPtrField<v1::NamedView>;

std::string numbered(std::string_view what, std::size_t number) {
  return std::string(what) + " " + std::to_string(number);
}

std::string_view label_of(HostTier tier) {
  switch (tier) {
    case HostTier::captured:
      return "opaque";
    case HostTier::stream:
      return "opaque_stream";
    case HostTier::eager:
      return "opaque_host";
    case HostTier::child:
      return "child";
    case HostTier::recorded:
      return "opaque";
  }
  return "opaque";
}

class Reader {
public:
  Reader(const v1::GraphDescription& message, PrivateKernelPlanes private_planes, const Limits& limits)
      : message_(message), private_planes_(private_planes), limits_(limits) {}

  StatusOr<Graph> read() {
    EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message_, "graph"));
    EAGLE_RETURN_IF_ERROR(check_name(message_.name(), "graph", "name", limits_.name_bytes));
    graph_.name = message_.name();
    EAGLE_RETURN_IF_ERROR(read_source_files());
    EAGLE_RETURN_IF_ERROR(read_kernels());
    EAGLE_RETURN_IF_ERROR(read_planes());
    if (message_.stages().empty()) {
      return Status(Reason::graph_state, "empty graph: it has no node; add one before it is built");
    }
    EAGLE_RETURN_IF_ERROR(read_stages(message_.stages(), Scope{}, graph_.stages));
    if (counters_) EAGLE_RETURN_IF_ERROR(check_counters(graph_));
    return std::move(graph_);
  }

private:
  // Where in the graph a list of stages stands: the graph itself, or the body of a conditional.
  struct Scope {
    std::string prefix;       // "" or "node 2 'loop': body "
    std::uint32_t depth = 0;  // conditionals and groups around it
    std::uint32_t nodes = 0;  // read so far; numbers the next one
  };

  Status read_source_files() {
    for (int i = 0; i < message_.source_files_size(); ++i) {
      EAGLE_RETURN_IF_ERROR(check_name(message_.source_files(i),
                                       numbered("source file", static_cast<std::size_t>(i)), "path",
                                       limits_.name_bytes));
      graph_.source_files.push_back(message_.source_files(i));
    }
    return {};
  }

  Status read_kernels() {
    for (const v1::Kernel& kernel : message_.kernels()) {
      StatusOr<kernel::Kernel> verified = kernel::verify(kernel, limits_.kernel);
      if (!verified.ok()) {
        return verified.status().within(numbered("kernel", graph_.kernels.size()) + " " +
                                        quote_name(kernel.name()));
      }
      accesses_.push_back(kernel::accesses(*verified));
      graph_.kernels.push_back(std::make_shared<const kernel::Kernel>(std::move(*verified)));
    }
    return {};
  }

  Status read_planes() {
    if (static_cast<std::uint64_t>(message_.planes_size()) > limits_.planes) {
      return over_limit("planes", static_cast<std::uint64_t>(message_.planes_size()), limits_.planes,
                        "graph_planes");
    }
    std::unordered_map<std::uint64_t, std::size_t> seen;
    seen.reserve(static_cast<std::size_t>(message_.planes_size()));
    graph_.planes.reserve(static_cast<std::size_t>(message_.planes_size()));
    for (const v1::PlaneDeclaration& declaration : message_.planes()) {
      const auto where = [&] { return numbered("plane", graph_.planes.size()); };
      StatusOr<Plane> plane = read_plane_within(declaration, "", limits_.name_bytes);
      if (!plane.ok()) return read_plane_within(declaration, where(), limits_.name_bytes).status();
      if (plane->shared) {
        // Views of different planes count as disjoint; the same memory declared twice would hide edges.
        const auto [first, fresh] = seen.emplace(plane->shared->id, graph_.planes.size());
        if (!fresh) {
          return {Reason::malformed_graph, where() + ": plane " + std::to_string(plane->shared->id) +
                                               " of the session is already declared as " +
                                               numbered("plane", first->second) + "; declare it once"};
        }
      }
      graph_.planes.push_back(*std::move(plane));
    }
    return {};
  }

  Status read_stages(const StageMessages& messages, Scope scope, std::vector<Stage>& stages) {
    stages.reserve(static_cast<std::size_t>(messages.size()));
    for (const v1::Stage& message : messages) {
      const auto where = [&] { return scope.prefix + numbered("stage", stages.size()); };
      if (!refuse_unknown_fields(message, {}).ok()) return refuse_unknown_fields(message, where());
      Stage stage;
      switch (message.kind_case()) {
        case v1::Stage::kNode:
          stage.branches.emplace_back();
          if (message.node().has_group()) {
            return {Reason::malformed_graph,
                    where() + ": found a group as a node; it is a stage of its own here"};
          }
          EAGLE_RETURN_IF_ERROR(read_node(message.node(), scope, stage.branches.back()));
          break;
        case v1::Stage::kGroup:
          stage.group = true;
          EAGLE_RETURN_IF_ERROR(read_group(message.group(), where(), scope, stage.branches));
          break;
        case v1::Stage::KIND_NOT_SET:
          return {Reason::malformed_graph, where() + ": expected a node or a group, found neither"};
      }
      stages.push_back(std::move(stage));
    }
    return {};
  }

  Status read_group(const v1::Group& message, const std::string& where, Scope& scope,
                    std::vector<Branch>& branches) {
    EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message, where));
    EAGLE_RETURN_IF_ERROR(check_depth(scope.depth + 1, where));
    if (message.branches_size() < 2) {
      return {Reason::malformed_graph, where + ": a group needs at least two branches, found " +
                                           std::to_string(message.branches_size()) +
                                           "; add the nodes of a single branch one by one"};
    }
    scope.depth += 1;
    for (const v1::Branch& branch : message.branches()) {
      const std::string here = where + ", " + numbered("branch", branches.size());
      EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(branch, here));
      if (branch.nodes().empty()) {
        return {Reason::malformed_graph, here + ": a branch needs at least one node, found none"};
      }
      Branch& read = branches.emplace_back();
      for (const v1::Node& node : branch.nodes()) {
        EAGLE_RETURN_IF_ERROR(node.has_group() ? read_inner_group(node, here, scope, read)
                                               : read_node(node, scope, read));
      }
    }
    scope.depth -= 1;
    return {};
  }

  // A group as an item of a branch.
  Status read_inner_group(const v1::Node& message, const std::string& branch, Scope& scope, Branch& into) {
    const std::string where = branch + ", " + numbered("item", into.nodes.size());
    EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message, where));
    if (!message.name().empty() || message.has_location()) {
      return {Reason::malformed_graph, where + ": a group has no name and no location; its nodes have"};
    }
    Group group;
    EAGLE_RETURN_IF_ERROR(read_group(message.group(), where, scope, group.branches));
    into.nodes.push_back({"", std::move(group), {}});
    return {};
  }

  // Where a node stands is spelled out for a refusal and for what has a body: most nodes are fine, and there
  // are thousands.
  Status read_node(const v1::Node& message, Scope& scope, Branch& branch) {
    if (++nodes_ > limits_.nodes) return over_limit("nodes", nodes_, limits_.nodes, "graph_nodes");
    Node node;
    const bool has_body = message.has_skippable() || message.has_repeat_while();
    if (has_body || !read_head(message, "", node).ok() || !read_kind(message, scope, "", node).ok()) {
      node = Node();
      std::string where = scope.prefix + numbered("node", scope.nodes);
      EAGLE_RETURN_IF_ERROR(read_head(message, where, node));
      where += " " + quote_name(node.label);
      EAGLE_RETURN_IF_ERROR(read_kind(message, scope, where, node));
    }
    branch.nodes.push_back(std::move(node));
    scope.nodes += 1;
    return {};
  }

  Status read_head(const v1::Node& message, const std::string& where, Node& node) const {
    EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message, where));
    EAGLE_RETURN_IF_ERROR(check_name(message.name(), where, "name", limits_.name_bytes));
    node.label = message.name().empty() ? default_label(message) : message.name();
    return {};
  }

  Status read_kind(const v1::Node& message, const Scope& scope, const std::string& where, Node& node) {
    EAGLE_RETURN_IF_ERROR(read_location(message, where, node.location));
    switch (message.kind_case()) {
      case v1::Node::kKernel: {
        const v1::KernelLaunch& launch = message.kernel();
        EAGLE_ASSIGN_OR_RETURN(const std::uint32_t kernel,
                               read_kernel_index(launch, graph_.kernels.size(), where));
        if (!message_.derivatives()) EAGLE_RETURN_IF_ERROR(refuse_derivative(*graph_.kernels[kernel], where));
        EAGLE_ASSIGN_OR_RETURN(node.kind, read_launch_of(launch, *graph_.kernels[kernel], accesses_[kernel],
                                                         graph_.planes, where, private_planes_));
        break;
      }
      case v1::Node::kHost: {
        EAGLE_ASSIGN_OR_RETURN(node.kind, read_host(message.host(), where));
        break;
      }
      case v1::Node::kSkippable: {
        const v1::Skippable& skippable = message.skippable();
        EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(skippable, where));
        EAGLE_ASSIGN_OR_RETURN(Conditional conditional, read_conditional(skippable, 0, where, scope.depth));
        node.kind = std::make_shared<const Conditional>(std::move(conditional));
        break;
      }
      case v1::Node::kRepeatWhile: {
        const v1::RepeatWhile& loop = message.repeat_while();
        EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(loop, where));
        if (loop.max_iterations() < 1) {
          return {Reason::bad_value, where + ": expected max_iterations of at least 1, found " +
                                         std::to_string(loop.max_iterations())};
        }
        EAGLE_ASSIGN_OR_RETURN(Conditional conditional,
                               read_conditional(loop, loop.max_iterations(), where, scope.depth));
        if (loop.has_iterations()) {
          EAGLE_ASSIGN_OR_RETURN(conditional.iterations,
                                 read_counter(loop.iterations(), graph_.planes, loop.max_iterations(),
                                              where + ": counter", private_planes_, limits_.name_bytes));
          counters_ = true;
        }
        node.kind = std::make_shared<const Conditional>(std::move(conditional));
        break;
      }
      case v1::Node::kReduce: {
        EAGLE_ASSIGN_OR_RETURN(Reduce reduce, read_reduce(message.reduce(), graph_.planes, where,
                                                          private_planes_, limits_.name_bytes));
        node.kind = std::make_shared<const Reduce>(std::move(reduce));
        break;
      }
      case v1::Node::kCopy: {
        EAGLE_ASSIGN_OR_RETURN(Copy copy, read_copy(message.copy(), graph_.planes, where, private_planes_));
        node.kind = std::make_shared<const Copy>(std::move(copy));
        break;
      }
      case v1::Node::kGroup:
      case v1::Node::KIND_NOT_SET:
        return {Reason::malformed_graph, where +
                                             ": expected a kernel launch, a host node or a conditional, "
                                             "found none"};
    }
    return {};
  }

  static Status refuse_derivative(const kernel::Kernel& kernel, std::string_view where) {
    if (kernel.derivative_of.empty()) return {};
    return {
        Reason::derivative_kernel,
        std::string(where) + ": kernel " + quote_name(kernel.name) + " is a derivative of " +
            quote_name(kernel.derivative_of) +
            ", and derivatives enter a graph through eagle.diff only; add the kernel itself to a graph made "
            "with record=True, and differentiate that with eagle.diff.reverse"};
  }

  [[nodiscard]] std::string default_label(const v1::Node& message) const {
    switch (message.kind_case()) {
      case v1::Node::kKernel: {
        const std::uint32_t index = message.kernel().kernel();
        const bool named = index < graph_.kernels.size() && !graph_.kernels[index]->name.empty();
        return named ? graph_.kernels[index]->name : "kernel";
      }
      case v1::Node::kHost:
        return std::string(label_of(static_cast<HostTier>(message.host().tier())));
      case v1::Node::kSkippable:
        return "skippable";
      case v1::Node::kRepeatWhile:
        return "repeat_while";
      case v1::Node::kReduce:
        return "reduce";
      case v1::Node::kCopy:
        return "copy";
      case v1::Node::kGroup:
      case v1::Node::KIND_NOT_SET:
        break;
    }
    return "";
  }

  Status read_location(const v1::Node& message, const std::string& where, kernel::Location& location) const {
    if (!message.has_location()) return {};
    EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message.location(), where));
    location = {message.location().file(), message.location().line(), message.location().column()};
    if (location.line == 0 || location.file < graph_.source_files.size()) return {};
    return {Reason::malformed_graph, where + ": its location refers to source file " +
                                         std::to_string(location.file) + " of a description with " +
                                         std::to_string(graph_.source_files.size())};
  }

  StatusOr<HostNode> read_host(const v1::HostNode& message, const std::string& where) const {
    EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message, where));
    if (message.tier() < v1::HOST_TIER_CAPTURED || message.tier() > v1::HOST_TIER_RECORDED) {
      return Status(Reason::malformed_graph,
                    where + ": host tier " + std::to_string(message.tier()) + " is unknown to this version");
    }
    HostNode host;
    host.call = message.call();
    host.tier = static_cast<HostTier>(message.tier());
    EAGLE_RETURN_IF_ERROR(read_views(message.reads(), where, host.reads));
    EAGLE_RETURN_IF_ERROR(read_views(message.writes(), where, host.writes));
    return host;
  }

  Status read_views(const NamedViewMessages& messages, const std::string& where,
                    std::vector<NamedView>& views) const {
    for (const v1::NamedView& message : messages) {
      EAGLE_ASSIGN_OR_RETURN(NamedView view,
                             read_named_view(message, graph_.planes, where, limits_.name_bytes));
      const Plane& plane = graph_.planes[view.view.plane];
      if (plane.scratch) return refuse_scratch(plane, where + ": plane " + quote_name(view.name));
      views.push_back(std::move(view));
    }
    return {};
  }

  // Skippable and RepeatWhile have their guard and body in common.
  template <typename Message>
  StatusOr<Conditional> read_conditional(const Message& message, std::int64_t max_iterations,
                                         const std::string& where, std::uint32_t depth) {
    EAGLE_RETURN_IF_ERROR(check_depth(depth + 1, where));
    if (!message.has_guard()) {
      return Status(Reason::malformed_graph, where + ": expected a guard, found none");
    }
    if (message.body().empty()) {
      return Status(Reason::malformed_graph, where + ": expected a body of at least one node, found none");
    }
    Conditional conditional;
    conditional.max_iterations = max_iterations;
    EAGLE_ASSIGN_OR_RETURN(conditional.guard, read_guard(message.guard(), where + ": guard"));
    EAGLE_RETURN_IF_ERROR(
        read_stages(message.body(), Scope{where + ": body ", depth + 1, 0}, conditional.body));
    return conditional;
  }

  StatusOr<Guard> read_guard(const v1::Guard& message, const std::string& where) const {
    EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message, where));
    if (!message.has_count()) return Status(Reason::malformed_graph, where + ": expected a cell, found none");
    Guard guard;
    guard.negated = message.negated();
    EAGLE_ASSIGN_OR_RETURN(guard.count, read_cell(message.count(), where));
    if (message.has_baseline()) {
      EAGLE_ASSIGN_OR_RETURN(guard.baseline, read_cell(message.baseline(), where));
    }
    return guard;
  }

  StatusOr<NamedView> read_cell(const v1::NamedView& message, const std::string& where) const {
    EAGLE_ASSIGN_OR_RETURN(NamedView cell,
                           read_named_view(message, graph_.planes, where, limits_.name_bytes));
    const std::string here = where + ": plane " + quote_name(cell.name);
    if (private_planes_ == PrivateKernelPlanes::refused) {
      EAGLE_RETURN_IF_ERROR(refuse_private(graph_.planes[cell.view.plane], here, "the guard"));
    }
    const plane::DType dtype = cell.view.dtype;
    if (dtype != plane::DType::i64 && dtype != plane::DType::i32 && dtype != plane::DType::boolean) {
      return Status(
          Reason::wrong_dtype,
          here + ": expected int64, int32 or bool, found " +
              std::string(dtype == plane::DType::other ? "another element type" : plane::name_of(dtype)) +
              "; make one that is with session.asarray(array, dtype=np.int64)");
    }
    if (const std::int64_t found = plane::elements(cell.view); found != 1) {
      return Status(Reason::wrong_shape, here + ": expected one element, found " + std::to_string(found));
    }
    return cell;
  }

  [[nodiscard]] Status check_depth(std::uint32_t depth, const std::string& where) const {
    if (depth <= limits_.depth) return {};
    return {Reason::graph_limit, where + ": conditionals and groups are nested deeper than " +
                                     std::to_string(limits_.depth) + " (graph_depth)"};
  }

  static Status over_limit(std::string_view what, std::uint64_t found, std::uint64_t limit,
                           std::string_view key) {
    return {Reason::graph_limit, "the graph has " + std::to_string(found) + " " + std::string(what) +
                                     " or more, and the limit is " + std::to_string(limit) + " (" +
                                     std::string(key) + ")"};
  }

  const v1::GraphDescription& message_;
  PrivateKernelPlanes private_planes_;
  const Limits& limits_;
  Graph graph_;
  std::vector<std::vector<kernel::Access>> accesses_;  // by kernel
  std::uint64_t nodes_ = 0;
  bool counters_ = false;  // some loop has one
};

}  // namespace

StatusOr<Graph> read(const v1::GraphDescription& message, PrivateKernelPlanes private_planes,
                     const Limits& limits) {
  return Reader(message, private_planes, limits).read();
}

}  // namespace eagle::graph
