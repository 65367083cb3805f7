#include "engine/graph/address.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <variant>

#include "eagle/v1/graph.pb.h"
#include "engine/kernel/names.h"

namespace eagle::graph {
namespace {

using kernel::quote_name;

// An argument that an address could mean.
struct Candidate {
  Target target;
  std::uint32_t leaf = 0;
  const std::string* label = nullptr;
  std::string_view name;
};

// Walks all nodes, bodies included, in the order that addresses count in.
class AddressWalk {
public:
  explicit AddressWalk(const Graph& graph) : graph_(graph) {}

  std::vector<Candidate> candidates(Wanted wanted) {
    wanted_ = wanted;
    stages(graph_.stages, true);
    return std::move(found_);
  }
  // Planes of nodes that keep the arrays they were made with: callables, guards, counters.
  std::vector<Candidate> kept() {
    stages(graph_.stages, true);
    return std::move(kept_);
  }

private:
  void stages(const std::vector<Stage>& list, bool outermost) {
    for (const Stage& stage : list) {
      for_each_leaf(stage.branches, [&](const Node& node) {
        visit(node);
        if (outermost) ++leaf_;
      });
    }
  }

  void visit(const Node& node) {
    const std::uint32_t number = nodes_++;
    if (const auto* launch = as<KernelLaunch>(node)) {
      const std::uint32_t ordinal = launches_++;
      const std::vector<kernel::Argument>& arguments = graph_.kernels[launch->kernel]->arguments;
      for (std::uint32_t i = 0; i < arguments.size(); ++i) {
        if (kernel::has_plane(arguments[i].role) != (wanted_ == Wanted::plane)) continue;
        found_.push_back({{number, ordinal, i}, leaf_, &node.label, arguments[i].name});
      }
    } else if (as<Copy>(node) != nullptr && wanted_ == Wanted::plane) {
      found_.push_back({{number, 0, 0}, leaf_, &node.label, copy_source_name});
      found_.push_back({{number, 0, 1}, leaf_, &node.label, copy_destination_name});
    } else if (const auto* reduce = as<Reduce>(node); reduce != nullptr && wanted_ == Wanted::plane) {
      found_.push_back({{number, 0, 0}, leaf_, &node.label, reduce->x.name});
      found_.push_back({{number, 0, 1}, leaf_, &node.label, reduce->out.name});
    } else if (const auto* host = as<HostNode>(node)) {
      for (const auto* views : {&host->reads, &host->writes}) {
        for (const NamedView& view : *views) kept_.push_back({{}, leaf_, &node.label, view.name});
      }
    } else if (const auto* conditional = as<Conditional>(node)) {
      kept_.push_back({{}, leaf_, &node.label, conditional->guard.count.name});
      if (conditional->guard.baseline)
        kept_.push_back({{}, leaf_, &node.label, conditional->guard.baseline->name});
      if (conditional->iterations) kept_.push_back({{}, leaf_, &node.label, conditional->iterations->name});
      stages(conditional->body, false);
    }
  }

  const Graph& graph_;
  Wanted wanted_ = Wanted::param;
  std::uint32_t nodes_ = 0;
  std::uint32_t launches_ = 0;
  std::uint32_t leaf_ = 0;
  std::vector<Candidate> found_;
  std::vector<Candidate> kept_;
};

bool means(const Address& address, const Candidate& one) {
  if (address.leaf) return one.leaf == *address.leaf && one.name == address.name;
  if (!address.node.empty()) return *one.label == address.node && one.name == address.name;
  return one.name == address.name || *one.label + "." + std::string(one.name) == address.name;
}

using Candidates = std::vector<const Candidate*>;

std::string list_of(const Candidates& candidates) {
  constexpr std::size_t most = 20;
  std::string out;
  for (std::size_t i = 0; i < std::min(most, candidates.size()); ++i) {
    const Candidate& one = *candidates[i];
    out += (i > 0 ? ", " : "") + quote_name(*one.label + "." + std::string(one.name)) + " (node " +
           std::to_string(one.leaf) + ")";
  }
  if (candidates.size() > most) out += " and " + std::to_string(candidates.size() - most) + " more";
  return out;
}

std::string spelled(const Address& address) {
  if (address.leaf) return "(" + std::to_string(*address.leaf) + ", " + quote_name(address.name) + ")";
  if (address.node.empty()) return quote_name(address.name);
  return "(" + quote_name(address.node) + ", " + quote_name(address.name) + ")";
}

std::vector<Target> targets_of(const Candidates& candidates) {
  std::vector<Target> out;
  for (const Candidate* one : candidates) out.push_back(one->target);
  return out;
}

// All that addresses of one graph could mean, found by name.
class Names {
public:
  Names(const Graph& graph, Wanted wanted)
      : graph_(graph), wanted_(wanted), all_(AddressWalk(graph).candidates(wanted)) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      by_name_[all_[i].name].push_back(&all_[i]);
      nodes_ += i == 0 || all_[i].target.node != all_[i - 1].target.node ? 1 : 0;
    }
  }

  [[nodiscard]] StatusOr<std::vector<Target>> resolve(const Address& address) const {
    if (address.leaf || !address.node.empty()) {
      return of_one_node(address, those(address.name, [&](const Candidate& one) {
                           return address.leaf ? one.leaf == *address.leaf : *one.label == address.node;
                         }));
    }
    const Candidates named = those(address.name, [](const Candidate&) { return true; });
    if (named.size() == 1 || (!named.empty() && named.size() == nodes_)) return targets_of(named);
    if (!named.empty()) return some_have_it(address, named);
    // "label.name"; both may hold dots.
    const std::string_view text = address.name;
    Candidates found;
    for (std::size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.', dot + 1)) {
      const Candidates more = those(text.substr(dot + 1), [&](const Candidate& one) {
        return std::string_view(*one.label) == text.substr(0, dot);
      });
      found.insert(found.end(), more.begin(), more.end());
    }
    return of_one_node(address, found);
  }

private:
  [[nodiscard]] Candidates those(std::string_view name,
                                 const std::function<bool(const Candidate&)>& holds) const {
    Candidates out;
    const auto bucket = by_name_.find(name);
    if (bucket == by_name_.end()) return out;
    for (const Candidate* one : bucket->second) {
      if (holds(*one)) out.push_back(one);
    }
    return out;
  }

  // Several nodes may have one label.
  [[nodiscard]] StatusOr<std::vector<Target>> of_one_node(const Address& address,
                                                          const Candidates& found) const {
    if (found.size() == 1) return targets_of(found);
    if (found.empty()) return unknown(address);
    return Status(Reason::unknown_name, spelled(address) + " could be that of " +
                                            std::to_string(found.size()) + " nodes: " + list_of(found) +
                                            "; say (index, name) with the index of the node");
  }

  [[nodiscard]] static Status some_have_it(const Address& address, const Candidates& named) {
    return {Reason::unknown_name,
            spelled(address) + " is a name of some nodes and not of all: " + list_of(named) +
                "; say whose, as in " + quote_name(*named.front()->label + "." + address.name)};
  }

  [[nodiscard]] Status unknown(const Address& address) const {
    const std::string what = wanted_ == Wanted::param ? "Param" : "plane";
    if (wanted_ == Wanted::plane) {
      for (const Candidate& one : AddressWalk(graph_).kept()) {
        if (!means(address, one)) continue;
        return {
            Reason::unknown_name,
            spelled(address) + " is a plane of node " + std::to_string(one.leaf) + " " +
                quote_name(*one.label) +
                ", a callable or conditional, which keeps the arrays that it was made with; store into the "
                "array that it has, or build another graph"};
      }
    }
    Candidates every;
    for (const Candidate& one : all_) every.push_back(&one);
    return {Reason::unknown_name,
            "there is no " + what + " " + spelled(address) + "; " +
                (all_.empty() ? "no node of this graph has one" : "the graph has " + list_of(every))};
  }

  const Graph& graph_;
  Wanted wanted_;
  std::vector<Candidate> all_;
  std::unordered_map<std::string_view, Candidates> by_name_;
  std::size_t nodes_ = 0;  // that have any
};

// ---- the same graph over other planes

std::string here(std::uint32_t number, const Node& node) {
  return "node " + std::to_string(number) + " " + quote_name(node.label);
}

class Comparison {
public:
  Comparison(const Graph& built, const Graph& fresh) : built_(built), fresh_(fresh) {}

  Status run() {
    const bool kernels =
        std::equal(built_.kernels.begin(), built_.kernels.end(), fresh_.kernels.begin(), fresh_.kernels.end(),
                   [](const auto& a, const auto& b) { return *a == *b; });
    if (!kernels) return differs("its kernels");
    return stages(built_.stages, fresh_.stages, true);
  }

private:
  static Status differs(const std::string& what) {
    return {Reason::malformed_graph,
            what + " are not those of the graph that was built; only planes can be bound again"};
  }

  Status stages(const std::vector<Stage>& built, const std::vector<Stage>& fresh, bool outermost) {
    if (built.size() != fresh.size()) return differs("its stages");
    for (std::size_t s = 0; s < built.size(); ++s) {
      const Stage& a = built[s];
      const Stage& b = fresh[s];
      if (a.group != b.group) return differs("its branches");
      EAGLE_RETURN_IF_ERROR(branches(a.branches, b.branches, outermost));
    }
    return {};
  }

  Status branches(const std::vector<Branch>& built, const std::vector<Branch>& fresh, bool outermost) {
    if (built.size() != fresh.size()) return differs("its branches");
    for (std::size_t i = 0; i < built.size(); ++i) {
      if (built[i].nodes.size() != fresh[i].nodes.size()) return differs("its nodes");
      for (std::size_t n = 0; n < built[i].nodes.size(); ++n) {
        const Node& a = built[i].nodes[n];
        const Node& b = fresh[i].nodes[n];
        const auto* const group = as<Group>(a);
        const auto* const other = as<Group>(b);
        if (group != nullptr && other != nullptr) {
          EAGLE_RETURN_IF_ERROR(branches(group->branches, other->branches, outermost));
          continue;
        }
        EAGLE_RETURN_IF_ERROR(node(a, b));
        if (outermost) ++leaf_;
      }
    }
    return {};
  }

  Status node(const Node& built, const Node& fresh) {
    const std::string where = here(leaf_, built);
    if (built.label != fresh.label || built.kind.index() != fresh.kind.index()) return differs("its nodes");
    return visit_kind(built, [&]<typename T>(const T& kind) { return same(kind, *as<T>(fresh), where); });
  }

  Status same(const KernelLaunch& built, const KernelLaunch& fresh, const std::string& where) const {
    if (built.kernel != fresh.kernel) return differs("the kernels of its nodes");
    for (std::size_t i = 0; i < built.arguments.size(); ++i) {
      if (!built.arguments[i].view) continue;
      EAGLE_RETURN_IF_ERROR(
          same_view(*built.arguments[i].view, *fresh.arguments[i].view,
                    where + ": argument " + quote_name(built_.kernels[built.kernel]->arguments[i].name)));
    }
    return {};
  }

  Status same(const Copy& built, const Copy& fresh, const std::string& where) const {
    if (built.index.has_value() != fresh.index.has_value()) return differs("the index of a copy");
    if (built.index) {
      EAGLE_RETURN_IF_ERROR(same_view(built.index->view, fresh.index->view, where + ": the index"));
    }
    EAGLE_RETURN_IF_ERROR(same_view(built.source, fresh.source, where + ": plane 'src'"));
    return same_view(built.destination, fresh.destination, where + ": plane 'dst'");
  }

  Status same(const Reduce& built, const Reduce& fresh, const std::string& where) const {
    if (built.op != fresh.op || built.compensated != fresh.compensated) return differs("its reductions");
    EAGLE_RETURN_IF_ERROR(same_view(built.x.view, fresh.x.view, where + ": plane 'x'"));
    return same_view(built.out.view, fresh.out.view, where + ": plane 'out'");
  }

  Status same(const HostNode& built, const HostNode& fresh, const std::string& where) const {
    if (built.call != fresh.call || built.tier != fresh.tier) return differs("its host nodes");
    EAGLE_RETURN_IF_ERROR(same_views(built.reads, fresh.reads, where));
    return same_views(built.writes, fresh.writes, where);
  }

  Status same(const Conditional& built, const Conditional& fresh, const std::string& where) {
    if (built.max_iterations != fresh.max_iterations || built.guard.negated != fresh.guard.negated ||
        built.guard.baseline.has_value() != fresh.guard.baseline.has_value()) {
      return differs("its guards");
    }
    EAGLE_RETURN_IF_ERROR(same_view(built.guard.count.view, fresh.guard.count.view, where + ": guard"));
    if (built.guard.baseline) {
      EAGLE_RETURN_IF_ERROR(
          same_view(built.guard.baseline->view, fresh.guard.baseline->view, where + ": guard"));
    }
    if (built.iterations.has_value() != fresh.iterations.has_value()) return differs("its counters");
    if (built.iterations) {
      EAGLE_RETURN_IF_ERROR(same_view(built.iterations->view, fresh.iterations->view, where + ": counter"));
    }
    return stages(built.body, fresh.body, false);
  }

  // Groups are compared where they stand.
  static Status same(const Group&, const Group&, const std::string&) { return differs("its nodes"); }

  static Status same_views(const std::vector<NamedView>& built, const std::vector<NamedView>& fresh,
                           const std::string& where) {
    if (built.size() != fresh.size()) return differs("the planes of its host nodes");
    for (std::size_t i = 0; i < built.size(); ++i) {
      EAGLE_RETURN_IF_ERROR(
          same_view(built[i].view, fresh[i].view, where + ": plane " + quote_name(built[i].name)));
    }
    return {};
  }

  static Status same_view(const plane::View& built, const plane::View& fresh, const std::string& where) {
    const bool type = built.dtype == fresh.dtype && built.item_bytes == fresh.item_bytes;
    if (type && built.shape == fresh.shape) return {};
    return {type ? Reason::wrong_shape : Reason::wrong_dtype,
            where + ": expected an array like the one it has, " + plane::to_string(built) + ", found " +
                plane::to_string(fresh) + "; build another graph for arrays of another kind"};
  }

  const Graph& built_;
  const Graph& fresh_;
  std::uint32_t leaf_ = 0;
};

}  // namespace

StatusOr<std::vector<Target>> resolve(const Graph& graph, const Address& address, Wanted wanted,
                                      std::string_view method) {
  StatusOr<std::vector<Target>> found = Names(graph, wanted).resolve(address);
  if (!found.ok()) return found.status().within(method);
  return found;
}

void to_message(const ParamUpdate& update, v1::ParamUpdate& message) {
  message.mutable_argument()->set_node(update.address.node);
  if (update.address.leaf) message.mutable_argument()->set_leaf(*update.address.leaf);
  message.mutable_argument()->set_name(update.address.name);
  if (const auto* const real = std::get_if<double>(&update.value)) {
    message.mutable_value()->set_real(*real);
  } else {
    message.mutable_value()->set_integer(std::get<std::int64_t>(update.value));
  }
}

StatusOr<ParamUpdate> read_update(const v1::ParamUpdate& message) {
  ParamUpdate update;
  update.address.node = message.argument().node();
  if (message.argument().has_leaf()) update.address.leaf = message.argument().leaf();
  update.address.name = message.argument().name();
  switch (message.value().value_case()) {
    case v1::ParamValue::kReal:
      update.value = message.value().real();
      return update;
    case v1::ParamValue::kInteger:
      update.value = std::int64_t{message.value().integer()};
      return update;
    case v1::ParamValue::VALUE_NOT_SET:
      break;
  }
  return Status(Reason::malformed_graph, "update: expected a number for each Param, found none");
}

StatusOr<std::vector<std::pair<Target, std::uint64_t>>> resolve_updates(
    const Graph& graph, const std::vector<ParamUpdate>& updates) {
  std::vector<const KernelLaunch*> launches;
  const std::function<void(const std::vector<Stage>&)> collect = [&](const std::vector<Stage>& stages) {
    for (const Stage& stage : stages) {
      for_each_leaf(stage.branches, [&](const Node& node) {
        if (const auto* launch = as<KernelLaunch>(node)) launches.push_back(launch);
        if (const auto* conditional = as<Conditional>(node)) collect(conditional->body);
      });
    }
  };
  collect(graph.stages);

  if (updates.size() > most_updates) {
    return Status(Reason::graph_limit, "update: " + std::to_string(updates.size()) +
                                           " numbers at once, more than " + std::to_string(most_updates) +
                                           " (graph_updates); update in parts");
  }
  const Names names(graph, Wanted::param);
  std::vector<std::pair<Target, std::uint64_t>> out;
  for (const ParamUpdate& update : updates) {
    const StatusOr<std::vector<Target>> targets = names.resolve(update.address);
    if (!targets.ok()) return targets.status().within("update");
    for (const Target& target : *targets) {
      const kernel::Kernel& kernel = *graph.kernels[launches[target.launch]->kernel];
      const kernel::Argument& argument = kernel.arguments[target.argument];
      EAGLE_ASSIGN_OR_RETURN(
          const std::uint64_t bits,
          param_bits(update.value, argument, "update: Param " + quote_name(argument.name)));
      out.emplace_back(target, bits);
    }
  }
  return out;
}

Status check_same_structure(const Graph& built, const Graph& fresh) {
  return Comparison(built, fresh).run().within("rebind");
}

}  // namespace eagle::graph
