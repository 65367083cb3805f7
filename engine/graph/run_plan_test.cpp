// Plans are run here by a small machine that knows no kernels: cells are integers in a map, a host call
// runs a callable of the test.
#include "engine/graph/run_plan.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>

#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using plane::testing::at;
using testing::Description;
using ::testing::ElementsAre;
using testing::host;
using ::testing::IsEmpty;
using testing::launch;
using testing::View;

class Machine {
public:
  explicit Machine(const RunPlan& plan) : plan_(plan), loops_(plan.loops) {}

  std::int64_t& cell(const View& view) { return cells_[{view.plane, view.offset}]; }
  void on_call(std::function<void(std::uint32_t)> function) { on_call_ = std::move(function); }

  void run() {
    constexpr int most = 100'000;  // instructions; more means that the program does not end
    std::uint32_t next = 0;
    for (int i = 0; next < plan_.program.size(); ++i) {
      ASSERT_LT(i, most);
      next = std::visit([&](const auto& op) { return step(op, next); }, plan_.program[next]);
    }
  }

  // What ran, in order: "call 3", "launch 0", "branches 0,1|2".
  std::vector<std::string> trace;

private:
  std::uint32_t step(const RunKernel& op, std::uint32_t here) {
    trace.push_back("launch " + std::to_string(op.launch));
    return here + 1;
  }
  std::uint32_t step(const RunHostCall& op, std::uint32_t here) {
    trace.push_back("call " + std::to_string(op.call));
    if (on_call_) on_call_(op.call);
    return here + 1;
  }
  std::uint32_t step(const RunReduce& op, std::uint32_t here) {
    trace.push_back("reduce " + std::to_string(op.reduce));
    return here + 1;
  }
  std::uint32_t step(const RunCopy& op, std::uint32_t here) {
    trace.push_back("copy " + std::to_string(op.copy));
    return here + 1;
  }
  std::uint32_t step(const RunBranches& op, std::uint32_t here) {
    std::string text = "branches ";
    for (std::uint32_t b = op.first; b < op.first + op.count; ++b) {
      if (b > op.first) text += "|";
      for (std::uint32_t i = 0; i < plan_.branches[b].count; ++i) {
        text += (i > 0 ? "," : "") + std::to_string(plan_.branches[b].first + i);
      }
    }
    trace.push_back(text);
    return here + 1;
  }
  std::uint32_t step(const SkipUnless& op, std::uint32_t here) {
    return holds(op.conditional->guard) ? here + 1 : op.target;
  }
  std::uint32_t step(const LoopEnter& op, std::uint32_t here) {
    loops_.at(op.loop) = 0;
    return here + 1;
  }
  std::uint32_t step(const LoopTest& op, std::uint32_t here) {
    if (!holds(op.conditional->guard) || loops_.at(op.loop) >= op.conditional->max_iterations)
      return op.target;
    ++loops_.at(op.loop);
    return here + 1;
  }
  std::uint32_t step(const LoopBack& op, std::uint32_t) { return op.target; }

  bool holds(const Guard& guard) {
    std::int64_t value = cell(guard.count.view);
    if (guard.baseline) value -= cell(guard.baseline->view);
    return (value != 0) != guard.negated;
  }

  const RunPlan& plan_;
  std::vector<std::int64_t> loops_;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::int64_t> cells_;
  std::function<void(std::uint32_t)> on_call_;
};

// Without the graph, so that nobody may look at its launches.
RunPlan plan_of(const Description& description, int team = 1) {
  const Graph graph = description.graph();
  return lower(graph, schedule_of(graph, team));
}

v1::Node call(std::uint32_t number) { return host("", {}, {}, number); }
v1::Stage step(std::uint32_t number) { return testing::stage(call(number)); }

struct Fixture : Description {
  View cell = array({4}, plane::DType::i64);
};

TEST(RunPlan, NodesRunInOrder) {
  Description d;
  const View x = d.array({8});
  const View y = d.array({8});
  d.add(call(5)).add(launch("", d.double_kernel(), {{"x", x}, {"y", y}})).add(host("named", {}, {}, 6));
  const Graph graph = d.graph();
  const RunPlan plan = lower(graph, schedule_of(graph, 1));
  Machine machine(plan);
  machine.run();
  EXPECT_THAT(machine.trace, ElementsAre("call 5", "launch 0", "call 6"));
  EXPECT_EQ(plan.kernels.size(), 1U);
  ASSERT_EQ(plan.launches.size(), 1U);
  EXPECT_EQ(plan.launches[0], as<KernelLaunch>(graph.stages[1].branches[0].nodes[0]));
}

TEST(RunPlan, AGroupInABranchRunsInItsPlace) {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  const auto plan_node = [&] {
    const View x = d.array({8});
    const View y = d.array({8});
    return launch("", kernel, {{"x", x}, {"y", y}});
  };
  const auto inner = testing::inner_group({{plan_node(), plan_node()}, {plan_node()}});
  d.add_group({{plan_node(), inner, plan_node()}, {plan_node()}});
  const RunPlan together = plan_of(d, 2);
  Machine machine(together);
  machine.run();
  EXPECT_THAT(machine.trace, ElementsAre("branches 0,1,2,3,4|5"));

  Description mixed;
  mixed.add_group({{call(1), testing::inner_group({{call(2)}, {call(3)}}), call(4)}, {call(5)}});
  const RunPlan in_order = plan_of(mixed, 2);
  Machine other(in_order);
  other.run();
  EXPECT_THAT(other.trace, ElementsAre("call 1", "call 2", "call 3", "call 4", "call 5"));
}

TEST(RunPlan, ALoopHasItsCounterWhereItWasGivenOne) {
  Fixture d;
  const View index = d.array({1}, plane::DType::i32);
  d.add(testing::repeat_while("plain", {plane::testing::at(d.cell, 0, 0)}, {step(1)}, 3));
  d.add(testing::repeat_while("counting", {plane::testing::at(d.cell, 0, 0)}, {step(1)}, 3, index));
  const RunPlan plan = plan_of(d);
  EXPECT_THAT(plan.counters, ElementsAre(std::nullopt, index));
  EXPECT_EQ(std::get<LoopBack>(plan.program.back()).loop, 1U);
}

TEST(RunPlan, BranchTasksRunTogetherAndWorkShareInOrder) {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  const auto plan_node = [&] {
    const View x = d.array({8});
    const View y = d.array({8});
    return launch("", kernel, {{"x", x}, {"y", y}});
  };
  d.add(plan_node());
  d.add_group({{plan_node(), plan_node()}, {plan_node()}});
  d.add(plan_node());
  const RunPlan parallel = plan_of(d, 2);
  Machine together(parallel);
  together.run();
  EXPECT_THAT(together.trace, ElementsAre("launch 0", "branches 1,2|3", "launch 4"));
  const RunPlan serial = plan_of(d, 1);
  Machine in_order(serial);
  in_order.run();
  EXPECT_THAT(in_order.trace, ElementsAre("launch 0", "launch 1", "launch 2", "launch 3", "launch 4"));
}

TEST(RunPlan, ASkippableRunsWhenItsGuardHolds) {
  Fixture d;
  d.add(testing::skippable("", {at(d.cell, 0, 0)}, {step(1), step(2)})).add(call(3));
  const RunPlan plan = plan_of(d);
  // A flag of 1, 0, 1 over three launches: the body has then run 1, 1, 2 times.
  Machine machine(plan);
  std::vector<std::int64_t> bodies;
  for (const int flag : {1, 0, 1}) {
    machine.cell(at(d.cell, 0, 0)) = flag;
    machine.run();
    bodies.push_back(std::count(machine.trace.begin(), machine.trace.end(), "call 2"));
  }
  EXPECT_THAT(bodies, ElementsAre(1, 1, 2));
  EXPECT_THAT(machine.trace,
              ElementsAre("call 1", "call 2", "call 3", "call 3", "call 1", "call 2", "call 3"));
}

TEST(RunPlan, AGuardMayBeNegatedOrComparedWithABaseline) {
  Fixture d;
  const View a = at(d.cell, 0, 0);
  const View b = at(d.cell, 0, 1);
  d.add(testing::skippable("", {a, b}, {step(1)})).add(testing::skippable("", {a, b, true}, {step(2)}));
  const RunPlan plan = plan_of(d);
  Machine machine(plan);
  machine.cell(a) = machine.cell(b) = 7;
  machine.run();
  machine.cell(b) = 6;
  machine.run();
  EXPECT_THAT(machine.trace, ElementsAre("call 2", "call 1"));
}

TEST(RunPlan, ALoopEndsWithItsGuardOrItsCap) {
  Fixture d;
  const View live = at(d.cell, 0, 0);
  d.add(testing::repeat_while("", {live}, {step(1)}, 64));
  const RunPlan plan = plan_of(d);
  EXPECT_EQ(plan.loops, 1U);
  Machine machine(plan);
  machine.on_call([&](std::uint32_t) { --machine.cell(live); });
  machine.cell(live) = 5;
  machine.run();
  EXPECT_EQ(machine.trace.size(), 5U);
  EXPECT_EQ(machine.cell(live), 0);
  // 1000 under a cap of 64, three launches: 192 bodies, 808 left.
  machine.cell(live) = 1000;
  for (int i = 0; i < 3; ++i) machine.run();
  EXPECT_EQ(machine.cell(live), 808);
  machine.trace.clear();
  machine.cell(live) = 0;
  machine.run();
  EXPECT_THAT(machine.trace, IsEmpty());
}

TEST(RunPlan, NestedConditionalsJumpToTheirOwnEnds) {
  Fixture d;
  const View outer = at(d.cell, 0, 0);
  const View inner = at(d.cell, 0, 1);
  const View flag = at(d.cell, 0, 2);
  // while outer: { 1; while inner: { 2; if flag: 3 }; 4 }; 5
  const auto maybe = testing::skippable("", {flag}, {step(3)});
  const auto loop = testing::repeat_while("", {inner}, {step(2), testing::stage(maybe)}, 10);
  d.add(testing::repeat_while("", {outer}, {step(1), testing::stage(loop), step(4)}, 10)).add(call(5));
  const RunPlan plan = plan_of(d);
  EXPECT_EQ(plan.loops, 2U);
  Machine machine(plan);
  machine.cell(outer) = 2;
  machine.on_call([&](std::uint32_t number) {
    if (number == 1) machine.cell(inner) = 2;
    if (number == 2) machine.cell(flag) = --machine.cell(inner);
    if (number == 4) --machine.cell(outer);
  });
  machine.run();
  EXPECT_THAT(machine.trace, ElementsAre("call 1", "call 2", "call 3", "call 2", "call 4", "call 1", "call 2",
                                         "call 3", "call 2", "call 4", "call 5"));
}

TEST(RunPlan, AGroupWithinABodyRunsItsBranchesInOrder) {
  Fixture d;
  d.add(
      testing::skippable("", {at(d.cell, 0, 0)}, {testing::group({{call(1), call(2)}, {call(3)}}), step(4)}));
  const RunPlan plan = plan_of(d, 8);
  Machine machine(plan);
  machine.cell(at(d.cell, 0, 0)) = 1;
  machine.run();
  EXPECT_THAT(machine.trace, ElementsAre("call 1", "call 2", "call 3", "call 4"));
  EXPECT_THAT(plan.branches, IsEmpty());
}

}  // namespace
}  // namespace eagle::graph
