#include "engine/graph/run_plan.h"

#include <utility>

namespace eagle::graph {
namespace {

class Lowering {
public:
  explicit Lowering(const Graph& graph) {
    plan_.kernels = graph.kernels;
    plan_.program.reserve(graph.stages.size());
    plan_.launches.reserve(graph.stages.size());
  }

  void stage(const Stage& stage, StageSchedule schedule) {
    if (schedule == StageSchedule::branch_tasks) {
      branches(stage);
    } else {
      in_order(stage);
    }
  }

  RunPlan finish() && { return std::move(plan_); }

private:
  // Branch after branch; races are refused, so the order between branches changes nothing.
  void in_order(const Stage& stage) { in_order(stage.branches); }

  void in_order(const std::vector<Branch>& branches) {
    for (const Branch& branch : branches) {
      for (const Node& node : branch.nodes) {
        std::visit([&](const auto& kind) { emit(kind); }, node.kind);
      }
    }
  }

  // The schedule promises that every node is a launch. Groups in a branch run in order like the rest of it.
  void branches(const Stage& stage) {
    const auto first = static_cast<std::uint32_t>(plan_.branches.size());
    for (const Branch& branch : stage.branches) {
      const auto begin = static_cast<std::uint32_t>(plan_.launches.size());
      for_each_leaf(std::span(&branch, 1), [&](const Node& node) { add_launch(*as<KernelLaunch>(node)); });
      plan_.branches.push_back({begin, static_cast<std::uint32_t>(plan_.launches.size()) - begin});
    }
    plan_.program.emplace_back(RunBranches{first, static_cast<std::uint32_t>(stage.branches.size())});
  }

  std::uint32_t add_launch(const KernelLaunch& launch) {
    plan_.launches.push_back(&launch);
    return static_cast<std::uint32_t>(plan_.launches.size() - 1);
  }

  void emit(const KernelLaunch& launch) { plan_.program.emplace_back(RunKernel{add_launch(launch)}); }

  void emit(const std::shared_ptr<const Reduce>& reduce) {
    plan_.reductions.push_back(reduce);
    plan_.program.emplace_back(RunReduce{static_cast<std::uint32_t>(plan_.reductions.size() - 1)});
  }

  void emit(const HostNode& host) { plan_.program.emplace_back(RunHostCall{host.call}); }

  void emit(const std::shared_ptr<const Copy>& copy) {
    plan_.copies.push_back(copy);
    plan_.program.emplace_back(RunCopy{static_cast<std::uint32_t>(plan_.copies.size() - 1)});
  }

  void emit(const Group& group) { in_order(group.branches); }

  void emit(const std::shared_ptr<const Conditional>& conditional) {
    if (conditional->max_iterations == 0) {
      const std::uint32_t head = next();
      plan_.program.emplace_back(SkipUnless{conditional, 0});
      body(*conditional);
      std::get<SkipUnless>(plan_.program[head]).target = next();
      return;
    }
    const std::uint32_t loop = plan_.loops++;
    plan_.counters.push_back(conditional->iterations ? std::optional(conditional->iterations->view)
                                                     : std::nullopt);
    plan_.program.emplace_back(LoopEnter{loop});
    const std::uint32_t head = next();
    plan_.program.emplace_back(LoopTest{conditional, loop, 0});
    body(*conditional);
    plan_.program.emplace_back(LoopBack{head, loop});
    std::get<LoopTest>(plan_.program[head]).target = next();
  }

  void body(const Conditional& conditional) {
    for (const Stage& stage : conditional.body) in_order(stage);
  }

  [[nodiscard]] std::uint32_t next() const { return static_cast<std::uint32_t>(plan_.program.size()); }

  RunPlan plan_;
};

}  // namespace

RunPlan lower(const Graph& graph, const std::vector<StageSchedule>& schedule) {
  Lowering lowering(graph);
  for (std::size_t i = 0; i < graph.stages.size(); ++i) lowering.stage(graph.stages[i], schedule.at(i));
  return std::move(lowering).finish();
}

}  // namespace eagle::graph
