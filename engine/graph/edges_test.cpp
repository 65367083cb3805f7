// The cases are those of the conformance table of the graph model.
#include "engine/graph/edges.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "engine/graph/find_edges.h"
#include "engine/graph/list_order.h"
#include "engine/graph/races.h"
#include "engine/graph/random_graph.h"
#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using plane::testing::array;
using plane::testing::at;
using plane::testing::cast;
using plane::testing::slice;
using plane::testing::transposed;
using testing::Description;
using ::testing::ElementsAre;
using testing::host;
using ::testing::IsEmpty;
using testing::launch;
using testing::View;

// "0-1 RAW y" for each edge.
std::vector<std::string> edges_of(const Description& description) {
  std::vector<std::string> out;
  for (const Edge& edge : edges(description.graph())) {
    out.push_back(std::to_string(edge.source) + "-" + std::to_string(edge.destination) + " " +
                  std::string(name_of(edge.kind)) + " " + edge.plane);
  }
  return out;
}

// Edges of a node that writes one view and a later one that reads another, of arrays of one description.
std::vector<std::string> write_then_read(Description description, const View& written, const View& read) {
  description.add(host("w", {}, {{"a", written}})).add(host("r", {{"b", read}}, {}));
  return edges_of(description);
}

TEST(Edges, AChainOfReadersAndWriters) {
  Description d;
  const View x = d.array({8});
  const View y = d.array({8});
  const View z = d.array({8});
  d.add(host("0", {{"x", x}}, {{"y", y}}))
      .add(host("1", {{"y", y}}, {{"z", z}}))
      .add(host("2", {{"z", z}}, {{"x", x}}));
  EXPECT_THAT(edges_of(d), ElementsAre("0-1 RAW y", "0-2 WAR x", "1-2 RAW z"));
}

TEST(Edges, AreFoundAsLongAsSomebodyWaitsForThem) {
  Description d;
  const View x = d.array({8});
  for (int i = 0; i < 100; ++i) d.add(host(std::to_string(i), {{"x", x}}, {{"x", x}}));
  EXPECT_EQ(find_edges(d.graph(), [] { return true; }).status().reason(), Reason::cancelled);
  int asked = 0;
  EXPECT_EQ(find_edges(d.graph(), [&] { return ++asked > 2; }).status().reason(), Reason::cancelled)
      << "its edges were found, and are being listed";
  const auto found = find_edges(d.graph(), [] { return false; });
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, edges(d.graph()));
}

TEST(Edges, UpdatesInPlace) {
  Description writes_first;
  View x = writes_first.array({8});
  writes_first.add(host("0", {}, {{"x", x}})).add(host("1", {{"x", x}}, {{"x", x}}));
  EXPECT_THAT(edges_of(writes_first), ElementsAre("0-1 RAW x", "0-1 WAW x"));

  Description writes_last;
  x = writes_last.array({8});
  writes_last.add(host("0", {{"x", x}}, {{"x", x}})).add(host("1", {}, {{"x", x}}));
  EXPECT_THAT(edges_of(writes_last), ElementsAre("0-1 WAW x", "0-1 WAR x"));

  Description reads_last;
  x = reads_last.array({8});
  reads_last.add(host("0", {{"x", x}}, {{"x", x}})).add(host("1", {{"x", x}}, {}));
  EXPECT_THAT(edges_of(reads_last), ElementsAre("0-1 RAW x"));
}

TEST(Edges, NothingIsReduced) {
  Description d;
  const View x = d.array({8});
  for (int i = 0; i < 4; ++i) d.add(host("", {{"x", x}}, {{"x", x}}));
  EXPECT_EQ(edges_of(d).size(), 18U);  // 6 pairs, three hazards each
}

TEST(Edges, ReadersDoNotWaitForReaders) {
  Description d;
  const View x = d.array({8});
  d.add(host("0", {{"x", x}}, {})).add(host("1", {{"x", x}}, {}));
  EXPECT_THAT(edges_of(d), IsEmpty());
}

TEST(Edges, CarryTheSourcesNameForAPlane) {
  Description raw;
  View x = raw.array({8});
  raw.add(host("0", {}, {{"p", x}})).add(host("1", {{"q", x}}, {}));
  EXPECT_THAT(edges_of(raw), ElementsAre("0-1 RAW p"));

  Description war;
  x = war.array({8});
  war.add(host("0", {{"p", x}}, {})).add(host("1", {}, {{"q", x}}));
  EXPECT_THAT(edges_of(war), ElementsAre("0-1 WAR p"));

  Description twice;
  x = twice.array({8});
  twice.add(host("0", {}, {{"a", x}, {"b", x}})).add(host("1", {{"c", x}}, {}));
  EXPECT_THAT(edges_of(twice), ElementsAre("0-1 RAW a", "0-1 RAW b"));

  Description one_name;
  x = one_name.array({8});
  one_name.add(host("0", {}, {{"a", slice(x, 0, 0, 4)}, {"a", slice(x, 0, 4, 4)}}))
      .add(host("1", {{"c", x}}, {}));
  EXPECT_THAT(edges_of(one_name), ElementsAre("0-1 RAW a"));
}

TEST(Edges, FollowTheBytesOfViews) {
  Description d;
  const View x = d.array({8});
  const View m = d.array({6, 4});
  const View tall = d.array({20'000, 8});
  const auto none = [&](const View& a, const View& b) { EXPECT_THAT(write_then_read(d, a, b), IsEmpty()); };
  const auto flows = [&](const View& a, const View& b) {
    EXPECT_THAT(write_then_read(d, a, b), ElementsAre("0-1 RAW a"));
  };
  none(slice(x, 0, 0, 4, 2), slice(x, 0, 1, 4, 2));
  flows(x, slice(x, 0, 4, 4));
  none(x, slice(x, 0, 8, 0));
  none(at(m, 1, 0), at(m, 1, 1));
  flows(at(m, 0, 0), at(m, 1, 0));
  flows(m, transposed(m));
  none(slice(x, 0, 7, 4, -2), slice(x, 0, 0, 4, 2));
  View broadcast = slice(x, 0, 0, 1);
  broadcast.shape = {5};
  broadcast.strides = {0};
  none(broadcast, slice(x, 0, 1, 7));
  flows(broadcast, slice(x, 0, 0, 1));
  flows(slice(cast(x, plane::DType::boolean), 0, 7, 2), slice(x, 0, 1, 7));
  none(slice(tall, 1, 0, 4), slice(tall, 1, 4, 4));
  // The real and the imaginary parts of four complex numbers.
  none(slice(x, 0, 0, 4, 2), slice(x, 0, 1, 4, 2));
}

TEST(Edges, SiblingsHaveNoneAndTheNextStageWaitsForAll) {
  Description d;
  const View x = d.array({8});
  const View y = d.array({8});
  const View z = d.array({8});
  d.add(host("seed", {}, {{"x", x}}));
  d.add_group({{host("l1", {{"x", x}}, {{"y", y}}), host("l2", {{"y", y}}, {{"y", y}})},
               {host("r", {{"x", x}}, {{"z", z}})}});
  d.add(host("join", {{"y", y}, {"z", z}}, {}));
  EXPECT_THAT(edges_of(d), ElementsAre("0-1 RAW x", "0-3 RAW x", "1-2 RAW y", "1-2 WAW y", "1-4 RAW y",
                                       "2-4 RAW y", "3-4 RAW z"));
}

TEST(Edges, ExistOnRacingGraphsToo) {
  Description d;
  const View x = d.array({8});
  d.add_group({{host("a", {}, {{"x", x}})}, {host("b", {}, {{"x", x}})}}).add(host("c", {{"x", x}}, {}));
  EXPECT_THAT(edges_of(d), ElementsAre("0-2 RAW x", "1-2 RAW x"));
}

TEST(Edges, AGuardReadsExactlyItsCell) {
  for (const bool next_cell : {true, false}) {
    Description d;
    const View count = d.array({3}, plane::DType::i64);
    const View work = d.array({8});
    d.add(host("setter", {}, {{"cnt", count}}));
    d.add(testing::skippable("maybe", {slice(count, 0, 1, 1)},
                             {testing::stage(host("step", {}, {{"w", work}}))}));
    d.add(host("later", {}, {{"cell", slice(count, 0, next_cell ? 1 : 0, 1)}}));
    if (next_cell) {
      EXPECT_THAT(edges_of(d), ElementsAre("0-1 RAW cnt", "0-2 WAW cnt", "1-2 WAR count"));
    } else {
      EXPECT_THAT(edges_of(d), ElementsAre("0-1 RAW cnt", "0-2 WAW cnt"));
    }
  }
}

TEST(Edges, ABaselineIsReadToo) {
  Description d;
  const View count = d.array({1}, plane::DType::i64);
  const View most = d.array({1}, plane::DType::i64);
  d.add(host("setter", {}, {{"most", most}}));
  d.add(testing::skippable("maybe", {count, most}, {testing::stage(host("step", {}, {}))}));
  d.add(host("later", {}, {{"most", most}}));
  EXPECT_THAT(edges_of(d), ElementsAre("0-1 RAW most", "0-2 WAW most", "1-2 WAR baseline"));
}

TEST(Edges, OverlappingColumnsOfOneMatrixHaveThem) {
  Description d;
  const View m = d.array({6, 8});
  EXPECT_THAT(write_then_read(d, slice(m, 1, 0, 3), slice(m, 1, 2, 3)), ElementsAre("0-1 RAW a"));
  EXPECT_THAT(write_then_read(d, slice(m, 1, 0, 3), slice(m, 1, 3, 3)), IsEmpty());
}

TEST(Edges, AnEmptyViewHasNoneEvenToItself) {
  Description d;
  const View none = slice(d.array({8}), 0, 2, 0);
  EXPECT_THAT(write_then_read(d, none, none), IsEmpty());
}

TEST(Edges, AConditionalTouchesWhatItsBodyTouches) {
  Description d;
  const View count = d.array({2}, plane::DType::i64);
  const View x = d.array({8});
  const View y = d.array({8});
  const auto inner =
      testing::repeat_while("inner", {at(count, 0, 1)},
                            {testing::group({{host("a", {{"x", x}}, {})}, {host("b", {}, {{"y", y}})}})}, 3);
  d.add(host("seed", {}, {{"x", x}}));
  d.add(testing::skippable("outer", {at(count, 0, 0)}, {testing::stage(inner)}));
  d.add(host("end", {{"y", y}}, {{"count", count}}));
  EXPECT_THAT(edges_of(d), ElementsAre("0-1 RAW x", "1-2 RAW y", "1-2 WAR count"));
}

TEST(Edges, FollowTheRolesOfAVerifiedKernel) {
  Description d;
  const View x = d.array({8});
  const View y = d.array({8});
  const std::uint32_t twice = d.double_kernel();
  const std::uint32_t accumulate = d.accumulate_kernel();
  d.add(launch("", twice, {{"y", y}, {"x", x}}));
  d.add(launch("", accumulate, {{"x", x}, {"y", y}}));
  EXPECT_THAT(edges_of(d), ElementsAre("0-1 RAW y", "0-1 WAW y"));
}

TEST(Edges, TheMaskOfAFinishingKernelIsWritten) {
  Description d;
  const View t = d.array({8});
  const View u = d.array({8});
  const View done = d.array({8}, plane::DType::boolean);
  const std::uint32_t finishing = d.finishing_kernel();
  d.add(launch("a", finishing, {{"t", t}, {"dt", 0.5}, {"done", done}}));
  d.add(launch("b", finishing, {{"t", u}, {"dt", 0.5}, {"done", done}}));
  EXPECT_THAT(edges_of(d), ElementsAre("0-1 RAW done", "0-1 WAW done", "0-1 WAR done"));
}

TEST(Edges, AnUnusedArgumentHasNoneAndAKeptStateIsOnlyRead) {
  kernel::KernelBuilder builder("idle");
  builder.scalar("unused");
  builder.state("kept", {});
  const auto x = builder.scalar("x");
  builder.output("y", x);
  Description d;
  const View a = d.array({8});
  const View b = d.array({8});
  const View c = d.array({8});
  const View e = d.array({8});
  const std::uint32_t idle = d.kernel(builder);
  d.add(host("seed", {}, {{"a", a}, {"b", b}, {"c", c}}));
  d.add(launch("", idle, {{"unused", a}, {"kept", b}, {"x", c}, {"y", e}}));
  EXPECT_THAT(edges_of(d), ElementsAre("0-1 RAW b", "0-1 RAW c"));
}

// The definition, pair by pair over sets of bytes.
std::vector<Edge> naive_edges(const Graph& graph) {
  const std::vector<Leaf> all = leaves(graph);
  const std::vector<testing::Forks> forks = testing::forks_of(graph.stages);
  const auto meet = [](const NamedView& a, const std::vector<NamedView>& others) {
    return std::any_of(others.begin(), others.end(),
                       [&](const NamedView& b) { return testing::share_bytes(a.view, b.view); });
  };
  std::vector<Edge> out;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    for (std::uint32_t j = i + 1; j < all.size(); ++j) {
      if (testing::in_different_branches(forks[i], forks[j])) continue;
      std::vector<Edge> pair;
      const auto add = [&](const std::string& plane, Hazard kind) {
        const Edge edge{i, j, plane, kind};
        if (std::find(pair.begin(), pair.end(), edge) == pair.end()) pair.push_back(edge);
      };
      for (const NamedView& plane : all[i].touches.writes) {
        if (meet(plane, all[j].touches.reads)) add(plane.name, Hazard::raw);
        if (meet(plane, all[j].touches.writes)) add(plane.name, Hazard::waw);
      }
      for (const NamedView& plane : all[i].touches.reads) {
        if (meet(plane, all[j].touches.writes)) add(plane.name, Hazard::war);
      }
      out.insert(out.end(), pair.begin(), pair.end());
    }
  }
  return out;
}

TEST(Edges, AgreeWithTheDefinitionOnRandomGraphs) {
  constexpr std::uint64_t seed = 5;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::size_t found = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Graph graph = testing::random_description(random).graph();
    const std::vector<Edge> listed = edges(graph);
    ASSERT_EQ(listed, naive_edges(graph));
    found += listed.size();
  }
  EXPECT_GT(found, 4000U);
}

// By leaf, those that pairs of leaves order before it, through others, too. The pairs ascend by their later
// leaf.
std::vector<std::set<std::uint32_t>> all_before(std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs,
                                                std::size_t leaves) {
  std::ranges::sort(pairs, {}, [](const auto& pair) { return pair.second; });
  std::vector<std::set<std::uint32_t>> before(leaves);
  for (const auto& [earlier, later] : pairs) {
    before[later].insert(earlier);
    before[later].insert(before[earlier].begin(), before[earlier].end());
  }
  return before;
}

TEST(ListOrder, OrdersWhatTheEdgesOrder) {
  constexpr std::uint64_t seed = 6;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::size_t compared = 0, pairs_left = 0, edges_left = 0;
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Graph graph = testing::random_description(random).graph();
    if (!check_races(graph).ok()) continue;
    const std::vector<Leaf> all = leaves(graph);
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (const Edge& edge : edges(graph)) pairs.emplace(edge.source, edge.destination);
    const auto order = list_order(all);
    ASSERT_EQ(all_before(order, all.size()), all_before({pairs.begin(), pairs.end()}, all.size()));
    ++compared;
    pairs_left += order.size();
    edges_left += pairs.size();
  }
  EXPECT_GT(compared, 300u);
  EXPECT_LT(pairs_left, edges_left);
}

TEST(ListOrder, OfThousandsOfLaunchesOnOneArrayHasOnePairEach) {
  Description d;
  const View x = d.array({100}), y = d.array({100});
  for (int i = 0; i < 5000; ++i) d.add(host("", {{"x", x}}, {{"x", x}}));
  for (int i = 0; i < 5000; ++i) d.add(host("", {{"x", x}}, {{"y", y}}));
  EXPECT_LE(list_order(leaves(d.graph())).size(), 15'000u);
}

TEST(Edges, ThousandsOfColumnsThatDoNotMeetAreNotAllCompared) {
  Description d;
  const View m = d.array({100, 5000});
  for (int i = 0; i < 5000; ++i) d.add(host("", {}, {{"m", at(m, 1, i)}}));
  d.add(host("", {{"m", m}}, {}));
  const std::vector<Edge> found = edges(d.graph());
  ASSERT_EQ(found.size(), 5000U);
  EXPECT_TRUE(
      std::all_of(found.begin(), found.end(), [](const Edge& edge) { return edge.destination == 5000; }));
}

TEST(Edges, OfAGroupInABranchAreThoseOfItsNodes) {
  Description d;
  const View x = d.array({8});
  const View y = d.array({8});
  const View z = d.array({8});
  d.add_group(
      {{host("first", {}, {{"x", x}}),
        testing::inner_group({{host("a", {{"x", x}}, {{"y", y}})}, {host("b", {{"x", x}}, {{"z", z}})}}),
        host("join", {{"y", y}, {"z", z}}, {})},
       {host("beside", {}, {})}});
  d.add(host("after", {}, {{"x", x}}));
  EXPECT_THAT(edges(d.graph()), ElementsAre(Edge{0, 1, "x", Hazard::raw}, Edge{0, 2, "x", Hazard::raw},
                                            Edge{0, 5, "x", Hazard::waw}, Edge{1, 3, "y", Hazard::raw},
                                            Edge{1, 5, "x", Hazard::war}, Edge{2, 3, "z", Hazard::raw},
                                            Edge{2, 5, "x", Hazard::war}));
}

TEST(Edges, OfALoopsCounterLeadToWhoReadsItAndFromWhoWroteIt) {
  Description d;
  const View live = d.array({1}, plane::DType::i64);
  const View index = d.array({1}, plane::DType::i64);
  d.add(host("reset", {}, {{"index", index}}));
  d.add(testing::repeat_while("loop", {live}, {testing::stage(host("body", {{"i", index}}, {}))}, 4, index));
  d.add(host("after", {{"n", index}}, {}));
  EXPECT_THAT(edges(d.graph()),
              ElementsAre(Edge{0, 1, "index", Hazard::raw}, Edge{0, 1, "index", Hazard::waw},
                          Edge{0, 2, "index", Hazard::raw}, Edge{1, 2, "iterations", Hazard::raw}));
}

TEST(Leaves, AreNumberedInAddOrder) {
  Description d;
  const View x = d.array({8});
  d.add(host("a", {{"x", x}}, {}));
  d.add_group({{host("b", {{"x", x}}, {}), host("c", {{"x", x}}, {})}, {host("d", {{"x", x}}, {})}});
  const Graph graph = d.graph();
  std::vector<std::string> seen;
  for (const Leaf& leaf : leaves(graph)) {
    seen.push_back(leaf.node->label + std::to_string(leaf.stage) + std::to_string(leaf.branch));
  }
  EXPECT_THAT(seen, ElementsAre("a00", "b10", "c10", "d11"));
}

TEST(Leaves, OfABodyCountEachPlaneOnce) {
  Description d;
  const View count = d.array({1}, plane::DType::i64);
  const View x = d.array({8});
  const auto step = testing::stage(host("s", {{"x", x}}, {{"x", x}}));
  const auto half = testing::stage(host("h", {{"x", slice(x, 0, 0, 4)}, {"y", x}}, {}));
  d.add(testing::skippable("maybe", {count}, {step, step, half, half}));
  const Graph graph = d.graph();
  const Touches touches = leaves(graph).at(0).touches;
  EXPECT_EQ(touches.reads.size(), 4U);  // count, x, half of x, and x by the name of y
  EXPECT_EQ(touches.writes.size(), 1U);
}

TEST(Leaves, AreSiblingsInDifferentBranchesOfOneGroup) {
  constexpr std::uint64_t seed = 11;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int found = 0;
  for (int round = 0; round < 50; ++round) {
    const Graph graph = testing::random_description(random).graph();
    const std::vector<Leaf> all = leaves(graph);
    const std::vector<testing::Forks> forks = testing::forks_of(graph.stages);
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      for (std::uint32_t j = 0; j < all.size(); ++j) {
        ASSERT_EQ(siblings(all, i, j), testing::in_different_branches(forks[i], forks[j])) << i << " " << j;
        found += siblings(all, i, j) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(found, 100);
}

TEST(Hazard, HasANameAndAMeaning) {
  EXPECT_EQ(name_of(Hazard::raw), "RAW");
  EXPECT_EQ(name_of(Hazard::war), "WAR");
  EXPECT_EQ(name_of(Hazard::waw), "WAW");
  EXPECT_EQ(meaning_of(Hazard::raw), "data flows");
  EXPECT_EQ(meaning_of(Hazard::war), "must wait to overwrite");
  EXPECT_EQ(meaning_of(Hazard::waw), "same output");
}

}  // namespace
}  // namespace eagle::graph
