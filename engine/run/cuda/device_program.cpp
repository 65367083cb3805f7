#include "engine/run/cuda/device_program.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "engine/graph/list_order.h"
#include "engine/kernel/names.h"
#include "engine/run/cuda/parents.h"
#include "engine/run/cuda/routines.h"

namespace eagle::run::cuda {
namespace {

using graph::Conditional;
using graph::HostNode;
using graph::KernelLaunch;
using graph::Stage;

// The graph that a callable was captured to; null for other nodes.
const CapturedGraph* captured(const graph::Node& node, const DeviceWorks& works) {
  const auto* const host = as<HostNode>(node);
  const auto found = host == nullptr ? works.end() : works.find(host->call);
  return found == works.end() ? nullptr : found->second.graph.get();
}

// Why bodies of these stages cannot be the device's; empty: they can.
std::string why_host(const std::vector<Stage>& stages, const DeviceWorks& works) {
  std::string why;
  for (const Stage& stage : stages) {
    graph::for_each_leaf(std::span<const graph::Branch>(stage.branches), [&](const graph::Node& node) {
      if (!why.empty()) return;
      if (const auto* conditional = as<Conditional>(node)) why = why_host(conditional->body, works);
      if (as<HostNode>(node) == nullptr) return;
      const CapturedGraph* const graph = captured(node, works);
      if (graph == nullptr)
        why = "a node in it is the client's";
      else if (!graph->fits_in_bodies().ok())
        why = kernel::quote_name(node.label) + ": " + graph->fits_in_bodies().message();
    });
  }
  return why;
}

int depth_of(const Conditional& conditional) {
  int deepest = 0;
  for (const Stage& stage : conditional.body) {
    graph::for_each_leaf(std::span<const graph::Branch>(stage.branches), [&](const graph::Node& node) {
      if (const auto* inner = as<Conditional>(node)) deepest = std::max(deepest, depth_of(*inner));
    });
  }
  return 1 + deepest;
}

// A conditional with the number of its loop, if it is one.
struct Loop {
  const Conditional& conditional;
  std::uint32_t number = 0;
};

class Lowering {
public:
  Lowering(DeviceModules& modules, const graph::Graph& graph, const std::vector<api::DevicePointer>& planes,
           api::DevicePointer beside, api::DevicePointer ran, const LoweringOptions& options,
           const DeviceProgram* built = nullptr)
      : built_(built),
        modules_(modules),
        graph_(graph),
        planes_(planes),
        beside_(beside),
        ran_(ran),
        options_(options),
        nodes_(modules, beside, options.account) {
    if (built_ != nullptr) nodes_.use_scratch(built_->scratch);
  }

  StatusOr<DeviceProgram> program() {
    made_.schedule.assign(graph_.stages.size(), graph::StageSchedule::cuda_graph);
    EAGLE_RETURN_IF_ERROR(stages(graph_.stages, true));
    made_.scratch = nodes_.take_scratch();
    for (DeviceExec& part : made_.parts) EAGLE_RETURN_IF_ERROR(part.instantiate());
    return std::move(made_);
  }

private:
  static Status count_nodes(std::size_t nodes) {
    if (nodes <= most_device_nodes) return {};
    return {Reason::graph_limit, "the graph is more than " + std::to_string(most_device_nodes) +
                                     " kernels on a GPU; expected at most so many"};
  }

  // Looks first whether there are not too many: this takes the square of their number in bits.
  StatusOr<Parents> parents_of(const std::vector<graph::Leaf>& leaves, bool outermost) {
    EAGLE_RETURN_IF_ERROR(count_nodes(leaves.size()));
    Parents parents = cuda::parents_of(graph::list_order(leaves), leaves.size());
    made_.parents.push_back(parents);
    if (outermost && options_.change_parents) options_.change_parents(parents);
    return parents;
  }

  // ---- what the host does

  Status stages(const std::vector<Stage>& stages, bool outermost = false) {
    const std::vector<graph::Leaf> leaves = graph::leaves(graph_, stages);
    EAGLE_ASSIGN_OR_RETURN(const Parents parents, parents_of(leaves, outermost));
    std::vector<api::GraphNode> last(leaves.size(), nullptr);  // of leaves in the open part
    bool open = false;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const graph::Node& node = *leaves[i].node;
      if (is_on_host(node)) {
        open = false;
        std::fill(last.begin(), last.end(), nullptr);
        if (outermost) made_.schedule[leaves[i].stage] = schedule_on_host(node);
        EAGLE_RETURN_IF_ERROR(on_host(node));
        continue;
      }
      if (!open) EAGLE_RETURN_IF_ERROR(begin_part());
      open = true;
      if (outermost && captured(node, options_.works) != nullptr &&
          made_.schedule[leaves[i].stage] == graph::StageSchedule::cuda_graph)
        made_.schedule[leaves[i].stage] = graph::StageSchedule::capture;
      std::vector<api::GraphNode> before;
      for (const std::uint32_t parent : parents[i]) {
        if (last[parent] != nullptr) before.push_back(last[parent]);
      }
      const api::Graph into = built_ == nullptr ? made_.parts.back().graph() : nullptr;
      EAGLE_ASSIGN_OR_RETURN(last[i], leaf(node, into, std::move(before), false));
    }
    return {};
  }

  Status begin_part() {
    made_.instructions.emplace_back(RunPart{parts_++});
    made_.stages.push_back({DeviceStage::Kind::cuda_graph, 0, "kernels as one CUDA graph"});
    stage_ = made_.stages.size() - 1;
    if (built_ != nullptr) return {};
    EAGLE_ASSIGN_OR_RETURN(DeviceExec part, DeviceExec::create(modules_.device()));
    made_.parts.push_back(std::move(part));
    return {};
  }

  // The stream of this process on which a callable enqueues.
  std::optional<api::Stream> stream_of(const HostNode& host) const {
    const auto found = options_.works.find(host.call);
    return found == options_.works.end() ? std::nullopt : found->second.stream;
  }

  graph::StageSchedule schedule_on_host(const graph::Node& node) const {
    const auto* host = as<HostNode>(node);
    if (host == nullptr) return graph::StageSchedule::host_loop;
    if (stream_of(*host)) return graph::StageSchedule::eager_stream;
    if (graph::works_on_gpu(host->tier)) return graph::StageSchedule::client_replay;
    return host->tier == graph::HostTier::eager ? graph::StageSchedule::eager_host
                                                : graph::StageSchedule::host_call;
  }

  bool is_on_host(const graph::Node& node) const {
    if (as<HostNode>(node) != nullptr) return captured(node, options_.works) == nullptr;
    const auto* conditional = as<Conditional>(node);
    return conditional != nullptr && !why_on_host(*conditional).empty();
  }

  std::string why_on_host(const Conditional& conditional) const {
    if (std::string why = why_host(conditional.body, options_.works); !why.empty()) return why;
    if (!options_.conditionals) return "conditional nodes are switched off";
    const Status& driver = modules_.device()->driver().conditionals();
    if (!driver.ok()) return driver.message();
    if (depth_of(conditional) > most_device_depth)
      return "more than " + std::to_string(most_device_depth) + " conditionals inside each other";
    return {};
  }

  Status on_host(const graph::Node& node) {
    const auto* const host = as<HostNode>(node);
    if (const auto stream = host == nullptr ? std::nullopt : stream_of(*host)) {
      made_.instructions.emplace_back(RunOnStream{host->call, *stream});
      made_.stages.push_back({DeviceStage::Kind::stream_call, 0,
                              kernel::quote_name(node.label) + " enqueues on its own stream, between two "
                                                               "CUDA graphs; the host waits for neither"});
      return {};
    }
    if (host != nullptr) {
      made_.instructions.emplace_back(graph::RunHostCall{host->call});
      made_.stages.push_back({DeviceStage::Kind::host_call, 0,
                              kernel::quote_name(node.label) + " is called between two CUDA graphs"});
      return {};
    }
    const auto& conditional = std::get<std::shared_ptr<const Conditional>>(node.kind);
    const bool repeats = conditional->max_iterations > 0;
    made_.stages.push_back({repeats ? DeviceStage::Kind::host_loop : DeviceStage::Kind::host_check, 0,
                            kernel::quote_name(node.label) +
                                (repeats ? " repeats between host checks: " : " runs after a host check: ") +
                                why_on_host(*conditional)});
    if (!repeats) {
      const std::size_t head = made_.instructions.size();
      made_.instructions.emplace_back(graph::SkipUnless{conditional, 0});
      EAGLE_RETURN_IF_ERROR(stages(conditional->body));
      std::get<graph::SkipUnless>(made_.instructions[head]).target = next();
      return {};
    }
    const std::uint32_t loop = new_loop(*conditional);
    made_.instructions.emplace_back(graph::LoopEnter{loop});
    const std::uint32_t head = next();
    made_.instructions.emplace_back(graph::LoopTest{conditional, loop, 0});
    EAGLE_RETURN_IF_ERROR(stages(conditional->body));
    made_.instructions.emplace_back(graph::LoopBack{head, loop});
    std::get<graph::LoopTest>(made_.instructions[head]).target = next();
    return {};
  }

  [[nodiscard]] std::uint32_t next() const { return static_cast<std::uint32_t>(made_.instructions.size()); }

  std::uint32_t new_loop(const Conditional& conditional) {
    made_.counters.push_back(conditional.iterations ? std::optional(conditional.iterations->view)
                                                    : std::nullopt);
    return made_.loops++;
  }

  // ---- what the device does

  // Adds what the leaf is; its last node, behind which whoever waits for the leaf comes.
  StatusOr<api::GraphNode> leaf(const graph::Node& node, api::Graph into, std::vector<api::GraphNode> before,
                                bool in_body) {
    if (const auto* conditional = as<Conditional>(node))
      return add(*conditional, into, std::move(before), in_body);
    if (const CapturedGraph* const graph = captured(node, options_.works)) {
      ++made_.stages[stage_].nodes;
      if (built_ != nullptr) return api::GraphNode{nullptr};
      return made_.parts.back().add(into, *graph, before);
    }
    std::vector<DeviceNode> chain;
    if (const auto* launch = as<KernelLaunch>(node)) {
      EAGLE_ASSIGN_OR_RETURN(chain, nodes_.launch(graph_.kernels[launch->kernel], *launch));
    } else if (const auto* reduce = graph::as<graph::Reduce>(node)) {
      EAGLE_ASSIGN_OR_RETURN(chain, nodes_.reduce(*reduce));
    } else {
      EAGLE_ASSIGN_OR_RETURN(chain, nodes_.copy(*graph::as<graph::Copy>(node)));
    }
    for (DeviceNode& one : chain) {
      EAGLE_ASSIGN_OR_RETURN(const api::GraphNode added, add(std::move(one), into, before, in_body));
      before = {added};
    }
    return before.front();
  }

  StatusOr<api::GraphNode> add(DeviceNode node, api::Graph into, const std::vector<api::GraphNode>& before,
                               bool in_body) {
    ++made_.stages[stage_].nodes;
    EAGLE_RETURN_IF_ERROR(count_nodes(made_.nodes.size() + 1));
    node.place(planes_);
    PlacedNode placed;
    if (built_ == nullptr) {
      EAGLE_ASSIGN_OR_RETURN(placed.handle, made_.parts.back().add(into, node, before));
    } else {
      placed.handle =
          made_.nodes.size() < built_->nodes.size() ? built_->nodes[made_.nodes.size()].handle : nullptr;
    }
    placed.part = parts_ - 1;
    placed.in_body = in_body;
    placed.node = std::move(node);
    if (placed.node.kernel) made_.launches.push_back(made_.nodes.size());
    made_.nodes.push_back(std::move(placed));
    return made_.nodes.back().handle;
  }

  // A guard's kernel, then the conditional node; a loop's body ends with a guard's kernel, too.
  StatusOr<api::GraphNode> add(const Conditional& conditional, api::Graph into,
                               std::vector<api::GraphNode> before, bool in_body) {
    const bool repeats = conditional.max_iterations > 0;
    const Loop loop{conditional, repeats ? new_loop(conditional) : 0};
    EAGLE_ASSIGN_OR_RETURN(const std::uint64_t handle, conditional_in(into));
    EAGLE_ASSIGN_OR_RETURN(DeviceNode enter, guard(loop, handle, false));
    EAGLE_ASSIGN_OR_RETURN(const api::GraphNode entered, add(std::move(enter), into, before, in_body));
    api::Graph body = nullptr;
    api::GraphNode added = nullptr;
    if (built_ == nullptr) {
      const int kind = repeats ? api::conditional_while : api::conditional_if;
      EAGLE_ASSIGN_OR_RETURN(added, made_.parts.back().add(into, kind, handle, {&entered, 1}, body));
    }
    ++made_.stages[stage_].nodes;
    EAGLE_ASSIGN_OR_RETURN(const std::vector<api::GraphNode> ends, body_of(conditional, body));
    if (repeats) {
      EAGLE_ASSIGN_OR_RETURN(DeviceNode back, guard(loop, handle, true));
      EAGLE_RETURN_IF_ERROR(add(std::move(back), body, ends, true).status());
    }
    return added;
  }

  // The handle of the conditional whose guard is the next node.
  StatusOr<std::uint64_t> conditional_in(api::Graph into) const {
    if (built_ == nullptr) return made_.parts.back().conditional(into);
    const std::size_t next = made_.nodes.size();
    if (next >= built_->nodes.size()) return std::uint64_t{0};
    return built_->nodes[next].node.words[offsetof(GuardWords, handle) / 8];
  }

  // The last nodes of leaves that nobody in the body waits for.
  StatusOr<std::vector<api::GraphNode>> body_of(const Conditional& conditional, api::Graph body) {
    const std::vector<graph::Leaf> leaves = graph::leaves(graph_, conditional.body);
    EAGLE_ASSIGN_OR_RETURN(const Parents parents, parents_of(leaves, false));
    std::vector<api::GraphNode> last;
    std::set<std::uint32_t> waited_for;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      std::vector<api::GraphNode> before;
      for (const std::uint32_t parent : parents[i]) {
        before.push_back(last[parent]);
        waited_for.insert(parent);
      }
      EAGLE_ASSIGN_OR_RETURN(const api::GraphNode added,
                             leaf(*leaves[i].node, body, std::move(before), true));
      last.push_back(added);
    }
    std::vector<api::GraphNode> ends;
    for (std::uint32_t i = 0; i < last.size(); ++i) {
      if (!waited_for.contains(i)) ends.push_back(last[i]);
    }
    return ends;
  }

  StatusOr<DeviceNode> guard(const Loop& loop, std::uint64_t handle, bool back) {
    const graph::Guard& guard = loop.conditional.guard;
    std::vector<AddressWord> addresses;
    const auto cell = [&](std::size_t offset, const plane::View& view) {
      addresses.push_back({offset / 8, view.plane, view.offset});
      return static_cast<std::int64_t>(view.item_bytes);
    };
    GuardWords words;
    words.handle = handle;
    words.count_bytes = cell(offsetof(GuardWords, count), guard.count.view);
    words.count_is_bool = guard.count.view.dtype == plane::DType::boolean ? 1 : 0;
    if (guard.baseline) {
      words.baseline_bytes = cell(offsetof(GuardWords, baseline), guard.baseline->view);
      words.baseline_is_bool = guard.baseline->view.dtype == plane::DType::boolean ? 1 : 0;
    }
    words.negated = guard.negated ? 1 : 0;
    words.cancel = beside_ + offsetof(Beside, cancel);
    if (loop.conditional.max_iterations > 0) {
      words.ran = ran_ + 8 * loop.number;
      words.most = loop.conditional.max_iterations;
      words.back = back ? 1 : 0;
      if (loop.conditional.iterations)
        words.iterations_bytes = cell(offsetof(GuardWords, iterations), loop.conditional.iterations->view);
    }
    std::vector<std::uint64_t> all(sizeof words / 8);
    std::memcpy(all.data(), &words, sizeof words);
    EAGLE_ASSIGN_OR_RETURN(DeviceNode node, nodes_.routine(guard_ptx(nodes_.arch()), std::move(all)));
    node.addresses = std::move(addresses);
    return node;
  }

  const DeviceProgram* const built_;  // null: this one is made, now
  DeviceModules& modules_;
  const graph::Graph& graph_;
  const std::vector<api::DevicePointer>& planes_;
  const api::DevicePointer beside_;
  const api::DevicePointer ran_;
  const LoweringOptions& options_;
  DeviceNodes nodes_;
  DeviceProgram made_;
  std::uint32_t parts_ = 0;
  std::size_t stage_ = 0;  // of the open part
};

bool differ_by_words(const PlacedNode& made, const PlacedNode& built) {
  const DeviceNode &one = made.node, &other = built.node;
  return one.module == other.module && one.grid.blocks == other.grid.blocks &&
         one.grid.threads == other.grid.threads && one.words.size() == other.words.size() &&
         made.part == built.part && made.in_body == built.in_body;
}

}  // namespace

std::string_view name_of(DeviceStage::Kind kind) {
  switch (kind) {
    case DeviceStage::Kind::cuda_graph:
      return "cuda_graph";
    case DeviceStage::Kind::stream_call:
      return "stream_call";
    case DeviceStage::Kind::host_call:
      return "host_call";
    case DeviceStage::Kind::host_loop:
      return "host_loop";
    case DeviceStage::Kind::host_check:
      return "host_check";
  }
  return "?";
}

std::uint32_t count_loops(const std::vector<Stage>& stages) {
  std::uint32_t loops = 0;
  for (const Stage& stage : stages) {
    graph::for_each_leaf(std::span<const graph::Branch>(stage.branches), [&](const graph::Node& node) {
      if (const auto* conditional = as<Conditional>(node))
        loops += (conditional->max_iterations > 0 ? 1 : 0) + count_loops(conditional->body);
    });
  }
  return loops;
}

StatusOr<DeviceProgram> lower(DeviceModules& modules, const graph::Graph& graph,
                              const std::vector<api::DevicePointer>& planes, api::DevicePointer beside,
                              api::DevicePointer ran, const LoweringOptions& options) {
  return Lowering(modules, graph, planes, beside, ran, options).program();
}

StatusOr<std::optional<DeviceProgram>> lower_again(DeviceModules& modules, const graph::Graph& graph,
                                                   const std::vector<api::DevicePointer>& planes,
                                                   api::DevicePointer beside, api::DevicePointer ran,
                                                   const LoweringOptions& options,
                                                   const DeviceProgram& built) {
  EAGLE_ASSIGN_OR_RETURN(DeviceProgram made,
                         Lowering(modules, graph, planes, beside, ran, options, &built).program());
  const bool same = made.parents == built.parents && made.loops == built.loops &&
                    made.instructions.size() == built.instructions.size() &&
                    std::equal(made.nodes.begin(), made.nodes.end(), built.nodes.begin(), built.nodes.end(),
                               differ_by_words);
  if (!same) return std::optional<DeviceProgram>();
  for_each_param(built, [&](std::uint32_t launch, std::uint32_t, std::size_t word) {
    const std::size_t node = built.launches[launch];
    made.nodes[node].node.words[word] = built.nodes[node].node.words[word];
  });
  return std::optional(std::move(made));
}

}  // namespace eagle::run::cuda
