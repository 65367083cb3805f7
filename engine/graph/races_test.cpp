#include "engine/graph/races.h"

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <string>

#include "engine/graph/leaf_maker.h"
#include "engine/graph/random_graph.h"
#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using plane::testing::at;
using plane::testing::slice;
using testing::Description;
using ::testing::HasSubstr;
using testing::host;
using testing::launch;
using testing::View;

void expect_race(const Description& description, const std::vector<std::string>& parts) {
  const Status status = check_races(description.graph());
  EXPECT_EQ(status.reason(), Reason::racing_siblings) << status.to_string();
  for (const std::string& part : parts) EXPECT_THAT(status.message(), HasSubstr(part));
  EXPECT_THAT(status.message(), HasSubstr("a plane of its own"));
  EXPECT_THAT(status.message(), HasSubstr("in one branch"));
}

void expect_none(const Description& description) {
  const Status status = check_races(description.graph());
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST(Races, AreLookedForAsLongAsSomebodyWaits) {
  Description d;
  const View y = d.array({8});
  d.add_group({{host("L", {}, {{"y", y}})}, {host("R", {}, {{"y", y}})}});
  EXPECT_EQ(check_races(d.graph(), [] { return true; }).reason(), Reason::cancelled);
  EXPECT_EQ(check_races(d.graph(), [] { return false; }).reason(), Reason::racing_siblings);
}

TEST(Races, NameBothNodesBothPlanesAndTheHazard) {
  Description same_output;
  View y = same_output.array({8});
  same_output.add_group({{host("L", {}, {{"y", y}})}, {host("R", {}, {{"y", y}})}});
  expect_race(same_output, {"node 0 'L' and node 1 'R'", "WAW, same output", "the first writes 'y'",
                            "the second writes 'y'"});

  Description flows;
  y = flows.array({8});
  flows.add(host("seed", {}, {}));
  flows.add_group({{host("L", {}, {{"p", y}})}, {host("R", {{"q", y}}, {})}});
  expect_race(flows, {"node 1 'L' and node 2 'R'", "RAW, data flows", "the first writes 'p'",
                      "the second reads 'q'"});

  Description overwrites;
  y = overwrites.array({8});
  overwrites.add_group({{host("L", {{"p", y}}, {})}, {host("R", {}, {{"q", y}})}});
  expect_race(overwrites, {"WAR, must wait to overwrite", "the first reads 'p'", "the second writes 'q'"});
}

TEST(Races, NameTheNodesWithinBranches) {
  Description d;
  const View x = d.array({8});
  const View z = d.array({8});
  d.add_group({{host("A1", {{"x", x}}, {}), host("A2", {}, {{"z", z}})},
               {host("B", {}, {{"z", slice(z, 0, 2, 6)}})}});
  expect_race(d, {"node 1 'A2' and node 2 'B'"});
}

TEST(Races, TheFirstPairInNodeOrderIsNamed) {
  Description d;
  const View x = d.array({8});
  const View y = d.array({8});
  d.add_group({{host("a", {{"x", x}}, {}), host("b", {}, {{"y", y}})},
               {host("c", {{"y", y}}, {}), host("d", {}, {{"x", x}})}});
  expect_race(d, {"node 0 'a' and node 3 'd'"});
}

TEST(Races, FinishingPlansThatShareAMask) {
  Description d;
  const View t = d.array({8});
  const View u = d.array({8});
  const View done = d.array({8}, plane::DType::boolean);
  const std::uint32_t finishing = d.finishing_kernel();
  d.add_group({{launch("a", finishing, {{"t", t}, {"dt", 0.5}, {"done", done}})},
               {launch("b", finishing, {{"t", u}, {"dt", 0.5}, {"done", done}})}});
  expect_race(d, {"'a'", "'b'", "'done'"});
}

TEST(Races, BranchesThatShareOnlyWhatTheyReadAreFine) {
  Description d;
  const View x = d.array({8});
  const View m = d.array({20'000, 8});
  d.add_group(
      {{host("l", {{"x", x}}, {{"m", slice(m, 1, 0, 4)}}), host("l2", {}, {{"m", slice(m, 1, 0, 4)}})},
       {host("r", {{"x", x}}, {{"m", slice(m, 1, 4, 4)}})}});
  d.add(host("next", {}, {{"x", x}}));
  expect_none(d);
}

TEST(Races, AreFoundInsideBodies) {
  Description d;
  const View count = d.array({1}, plane::DType::i64);
  const View y = d.array({8});
  const auto racing = testing::group({{host("a", {}, {{"y", y}})}, {host("b", {}, {{"y", y}})}});
  const auto inner = testing::repeat_while("inner", {count}, {testing::stage(host("s", {}, {})), racing}, 3);
  d.add(host("first", {}, {})).add(testing::skippable("outer", {count}, {testing::stage(inner)}));
  expect_race(d, {"in the body of node 1 'outer': in the body of node 0 'inner': node 1 'a' and node 2 'b'"});
}

TEST(Races, OfOneBodyAreNotForgottenOverTheNext) {
  Description d;
  const View count = d.array({1}, plane::DType::i64);
  const View y = d.array({8});
  const auto racing = testing::group({{host("a", {}, {{"y", y}})}, {host("b", {}, {{"y", y}})}});
  const auto fine = testing::stage(host("c", {}, {}));
  d.add_group(
      {{testing::skippable("bad", {count}, {racing})}, {testing::skippable("good", {count}, {fine})}});
  expect_race(d, {"in the body of node 0 'bad': node 0 'a' and node 1 'b'"});
}

TEST(Races, AConditionalRacesWithWhatItsBodyTouches) {
  Description d;
  const View count = d.array({1}, plane::DType::i64);
  const View y = d.array({8});
  d.add_group({{testing::skippable("maybe", {count}, {testing::stage(host("s", {}, {{"y", y}}))})},
               {host("r", {{"y", y}}, {})}});
  expect_race(d, {"node 0 'maybe' and node 1 'r'", "writes 'y'"});

  Description by_guard;
  const View cell = by_guard.array({1}, plane::DType::i64);
  by_guard.add_group({{testing::skippable("maybe", {cell}, {testing::stage(host("s", {}, {}))})},
                      {host("w", {}, {{"cell", cell}})}});
  expect_race(by_guard, {"reads 'count'", "writes 'cell'"});
}

TEST(Races, ReachIntoAndOutOfAGroupInABranch) {
  using testing::Planes;
  const auto with = [](const Planes& inner_a, const Planes& inner_b, const Planes& beside) {
    Description d;
    const View x = d.array({8});
    const View y = d.array({8});
    const std::map<std::string, View> arrays{{"x", x}, {"y", y}};
    const auto writes = [&](const Planes& names) {
      Planes out;
      for (const auto& [name, view] : names) out.emplace_back(name, arrays.at(name));
      return out;
    };
    d.add(host("before", {}, {}));
    d.add_group({{host("first", {}, {}),
                  testing::inner_group({{host("a", {}, writes(inner_a))}, {host("b", {}, writes(inner_b))}})},
                 {host("beside", {}, writes(beside))}});
    return d;
  };
  expect_race(with({{"x", {}}}, {{"x", {}}}, {}), {"node 2 'a' and node 3 'b'", "WAW", "in one branch"});
  expect_race(with({}, {{"y", {}}}, {{"y", {}}}), {"node 3 'b' and node 4 'beside'"});
  expect_race(with({{"x", {}}, {"y", {}}}, {{"x", {}}}, {{"y", {}}}), {"node 2 'a' and node 3 'b'"});
  expect_none(with({{"x", {}}}, {{"y", {}}}, {}));
}

TEST(Races, SiblingsThatReadALoopsCounterRaceWithTheLoop) {
  Description d;
  const View live = d.array({1}, plane::DType::i64);
  const View index = d.array({1}, plane::DType::i64);
  d.add_group({{testing::repeat_while("loop", {live}, {testing::stage(host("body", {}, {}))}, 4, index)},
               {host("look", {{"n", index}}, {})}});
  expect_race(d, {"node 0 'loop' and node 1 'look'", "writes 'iterations'", "reads 'n'"});
}

TEST(Races, ThousandsOfBranchesOverColumnsAreFine) {
  Description d;
  const View x = d.array({100});
  const View m = d.array({100, 4000});
  std::vector<std::vector<v1::Node>> branches;
  for (int i = 0; i < 4000; ++i) branches.push_back({host("", {{"x", x}}, {{"m", at(m, 1, i)}})});
  d.add_group(branches);
  expect_none(d);
}

TEST(Races, AGroupTooIntricateToCompareIsRefusedInBoundedTime) {
  // Every pair of these views takes the search to its cap: random strides, and all but one of them even.
  Description d;
  const View all = d.array({std::int64_t{1} << 46}, plane::DType::boolean);
  std::mt19937_64 random(3);
  std::vector<std::vector<v1::Node>> branches;
  for (int i = 0; i < 60; ++i) {
    View view = all;
    view.offset = i % 2;
    view.shape = std::vector<std::int64_t>(16, 2);
    view.strides = {};
    for (int k = 0; k < 16; ++k)
      view.strides.push_back(2 + 2 * static_cast<std::int64_t>(random() % 1'000'000'000'000));
    view.strides[5] += 1;
    branches.push_back({host("", {}, {{"y", view}})});
  }
  d.add_group(branches);
  const Status status = check_races(d.graph());
  EXPECT_EQ(status.reason(), Reason::graph_limit) << status.to_string();
  EXPECT_THAT(status.message(), HasSubstr("graph_race_steps"));
}

// The definition, for one list of stages and everything inside it.
std::string first_race(const LeafMaker& maker, const std::vector<Stage>& stages, const std::string& where) {
  const std::vector<Leaf> all = maker.leaves(stages);
  const std::vector<testing::Forks> forks = testing::forks_of(stages);
  const auto meet = [](const std::vector<NamedView>& some, const std::vector<NamedView>& others) {
    for (const NamedView& a : some) {
      for (const NamedView& b : others) {
        if (testing::share_bytes(a.view, b.view)) return true;
      }
    }
    return false;
  };
  const auto name = [&](std::size_t i) {
    return "node " + std::to_string(i) + " '" + all[i].node->label + "'";
  };
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = i + 1; j < all.size(); ++j) {
        if (all[i].stage != stage || !testing::in_different_branches(forks[i], forks[j])) continue;
        const Touches& a = all[i].touches;
        const Touches& b = all[j].touches;
        if (meet(a.writes, b.reads) || meet(a.writes, b.writes) || meet(a.reads, b.writes)) {
          return where + name(i) + " and " + name(j) + " are";
        }
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto* const body = as<Conditional>(*all[i].node);
      if (all[i].stage != stage || body == nullptr) continue;
      std::string inner = first_race(maker, body->body, where + "in the body of " + name(i) + ": ");
      if (!inner.empty()) return inner;
    }
  }
  return "";
}

TEST(Races, AgreeWithTheDefinitionOnRandomGraphs) {
  constexpr std::uint64_t seed = 17;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int racing = 0;
  constexpr int rounds = 600;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Graph graph = testing::random_description(random).graph();
    const std::string expected = first_race(LeafMaker(graph), graph.stages, "");
    const Status status = check_races(graph);
    ASSERT_EQ(status.ok(), expected.empty()) << status.to_string() << expected;
    if (!expected.empty()) {
      ++racing;
      ASSERT_THAT(status.message(), ::testing::StartsWith(expected));
    }
  }
  EXPECT_GT(racing, rounds / 10);
  EXPECT_LT(racing, rounds * 9 / 10);
}

}  // namespace
}  // namespace eagle::graph
