#include "engine/graph/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "eagle/v1/explain.pb.h"
#include "engine/graph/races.h"
#include "engine/graph/random_graph.h"
#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using plane::View;
using plane::testing::slice;
using testing::Cells;
using testing::Description;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using testing::host;
using testing::launch;

NodeReference at(std::uint32_t index) { return index; }
NodeReference called(const char* label) { return std::string(label); }

PairExplanation pair(const Graph& graph, const NodeReference& a, const NodeReference& b) {
  return explain(graph, a, b).value();
}
NodeExplanation node(const Graph& graph, const NodeReference& name,
                     const std::vector<StageSchedule>& schedule = {}) {
  return explain(graph, name, schedule).value();
}

const PlaneExplanation& plane_of(const NodeExplanation& node, const std::string& name) {
  for (const PlaneExplanation& plane : node.planes) {
    if (plane.plane == name) return plane;
  }
  ADD_FAILURE() << "no plane " << name;
  return node.planes.front();
}

TEST(ExplainPair, SaysWhichBytesOfWhichPlanesTheyShare) {
  Description d;
  const View x = d.array({8});
  d.add(host("seed", {}, {{"p", x}})).add(host("tail", {{"q", slice(x, 0, 4, 4)}}, {}));
  const PairExplanation found = pair(d.graph(), called("seed"), called("tail"));
  EXPECT_EQ(found.relation, Relation::ordered);
  ASSERT_EQ(found.meetings.size(), 1U);
  const Meeting& meeting = found.meetings.front();
  EXPECT_EQ(meeting.kind, Hazard::raw);
  EXPECT_EQ(meeting.source_plane, "p");
  EXPECT_EQ(meeting.destination_plane, "q");
  EXPECT_EQ(meeting.memory, "array0");
  EXPECT_EQ(meeting.shared.first, 32);
  EXPECT_EQ(meeting.shared.count, 32);
  EXPECT_EQ(meeting.first_in_source, 32);
  EXPECT_EQ(meeting.first_in_destination, 0);
  EXPECT_TRUE(meeting.exact);
}

TEST(ExplainPair, TakesTheTwoInEitherOrder) {
  Description d;
  const View x = d.array({8});
  d.add(host("a", {}, {{"x", x}})).add(host("b", {{"x", x}}, {}));
  const PairExplanation found = pair(d.graph(), at(1), at(0));
  EXPECT_EQ(found.source.label, "a");
  EXPECT_EQ(found.destination.index, 1U);
}

TEST(ExplainPair, OfNodesThatShareNothingIsIndependent) {
  Description d;
  const View x = d.array({8});
  d.add(host("a", {{"x", x}}, {})).add(host("b", {{"x", x}}, {}));
  const PairExplanation found = pair(d.graph(), at(0), at(1));
  EXPECT_EQ(found.relation, Relation::independent);
  EXPECT_TRUE(found.meetings.empty());
  EXPECT_EQ(found.refusal, "");
}

TEST(ExplainPair, OfRacingSiblingsCarriesTheRefusalThatBuildGives) {
  Description d;
  const View y = d.array({8});
  d.add_group({{host("L", {}, {{"p", y}})}, {host("R", {{"q", y}}, {})}});
  const Graph graph = d.graph();
  const PairExplanation found = pair(graph, called("L"), called("R"));
  EXPECT_EQ(found.relation, Relation::racing);
  EXPECT_EQ(found.refusal, check_races(graph).message());
}

TEST(ExplainPair, OfOrderedNodesSaysWhatTheRefusalWouldBe) {
  Description d;
  const View y = d.array({8});
  d.add(host("L", {{"p", y}}, {})).add(host("R", {}, {{"q", y}}));
  const PairExplanation found = pair(d.graph(), at(0), at(1));
  EXPECT_THAT(found.refusal, HasSubstr("race (WAR, must wait to overwrite)"));
  EXPECT_THAT(found.refusal, HasSubstr("node 0 'L'"));
  EXPECT_THAT(found.refusal, HasSubstr("the second writes 'q'"));
}

TEST(ExplainPair, OfPeacefulSiblingsSaysSo) {
  Description d;
  d.add_group({{host("L", {}, {{"p", d.array({8})}})}, {host("R", {}, {{"q", d.array({8})}})}});
  EXPECT_EQ(pair(d.graph(), at(0), at(1)).relation, Relation::siblings);
}

TEST(ExplainPair, RefusesWhatIsNotTwoNodesOfThisGraph) {
  Description d;
  const View x = d.array({8});
  d.add(host("same", {}, {{"x", x}})).add(host("same", {}, {{"x", x}}));
  const Graph graph = d.graph();
  EXPECT_THAT(explain(graph, at(0), at(2)).status().message(), HasSubstr("nodes 0 to 1"));
  EXPECT_THAT(explain(graph, at(0), at(0)).status().message(), HasSubstr("does not wait for itself"));
  EXPECT_THAT(explain(graph, called("same"), at(0)).status().message(), HasSubstr("by its index: 0, 1"));
  EXPECT_THAT(explain(graph, called("other"), at(0)).status().message(), HasSubstr("no node 'other'"));
  EXPECT_THAT(explain(Graph{}, at(0), at(1)).status().message(), HasSubstr("empty"));
}

TEST(ExplainPair, SaysThatASearchWasCapped) {
  Description d;
  const View x = d.array({4'000'000}, plane::DType::boolean);
  View a = x;
  a.shape = {997, 991, 983};
  a.strides = {3001, 1009, 17};
  a.offset = 0;
  View b = x;
  b.shape = {990, 980, 970};
  b.strides = {2999, 1013, 19};
  b.offset = 1;
  a.shape = {300, 300, 300};
  b.shape = {300, 300, 300};
  d.add(host("a", {}, {{"a", a}})).add(host("b", {}, {{"b", b}}));
  const PairExplanation found = pair(d.graph(), at(0), at(1));
  EXPECT_EQ(found.relation, Relation::ordered);
  EXPECT_FALSE(found.meetings.front().exact);
}

// explain and edges are one rule: what all pairs say together is what the list says.
TEST(ExplainPair, OfAllPairsOfRandomGraphsAddsUpToTheEdges) {
  const std::uint64_t seed = 20;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    const Graph graph = testing::random_description(random).graph();
    std::vector<Edge> together;
    const auto count = static_cast<std::uint32_t>(leaves(graph).size());
    for (std::uint32_t i = 0; i < count; ++i) {
      for (std::uint32_t j = i + 1; j < count; ++j) {
        const PairExplanation found = pair(graph, at(i), at(j));
        if (found.relation != Relation::ordered) continue;
        for (Edge& edge : edges_of(found.meetings, i, j)) together.push_back(std::move(edge));
      }
    }
    ASSERT_EQ(together, edges(graph));
    if (count == 0) continue;
    std::vector<Edge> around;
    for (const Edge& edge : together) {
      if (edge.destination == count / 2) around.push_back(edge);
    }
    ASSERT_EQ(node(graph, at(count / 2)).in, around);
  }
}

TEST(ExplainNode, SaysWhyTheKernelTouchesEachPlane) {
  Description d;
  const View t = d.array({8});
  const View mask = d.array({8}, plane::DType::boolean);
  d.add(launch("step", d.finishing_kernel(), {{"t", t}, {"dt", 0.5}, {"done", mask}}));
  const NodeExplanation found = node(d.graph(), called("step"));
  EXPECT_EQ(found.kind, "a launch of kernel 'finishing' over 8 samples");
  EXPECT_THAT(plane_of(found, "t").why, HasSubstr("the value it had is used"));
  EXPECT_TRUE(plane_of(found, "t").read && plane_of(found, "t").written);
  EXPECT_EQ(plane_of(found, "t").bytes.count, 64);
  EXPECT_THAT(plane_of(found, "done").why, HasSubstr("mask"));
}

TEST(ExplainNode, TellsAStoreThatFinishedSamplesSurvive) {
  kernel::KernelBuilder b("reset");
  b.state("y", {});
  b.terminated("done");
  b.commit("y", b.real(1.0));
  b.commit("done", b.boolean(true));
  Description d;
  const std::uint32_t kernel = d.kernel(b);
  d.add(launch("", kernel, {{"y", d.array({8})}, {"done", d.array({8}, plane::DType::boolean)}}));
  EXPECT_THAT(plane_of(node(d.graph(), at(0)), "y").why, HasSubstr("what they had survives"));
}

TEST(ExplainNode, OfAConditionalNamesGuardAndBody) {
  Description d;
  const View x = d.array({8});
  const View flag = d.array({1}, plane::DType::i64);
  d.add(testing::repeat_while("loop", Cells{plane::testing::at(flag, 0, 0)},
                              {testing::stage(host("body", {{"x", x}}, {{"x", x}}))}, 7));
  const NodeExplanation found = node(d.graph(), at(0));
  EXPECT_THAT(found.kind, HasSubstr("at most 7 times"));
  EXPECT_THAT(plane_of(found, "count").why, HasSubstr("guard"));
  EXPECT_EQ(plane_of(found, "x").why,
            "in the body, 'body': declared as read; in the body, 'body': declared as written");
}

TEST(ExplainNode, OfALongBodyOverOnePlaneSaysTheFirstReasons) {
  Description d;
  const View x = d.array({8});
  std::vector<v1::Stage> body;
  for (int i = 0; i < 3000; ++i)
    body.push_back(testing::stage(host("n" + std::to_string(i), {{"x", x}}, {})));
  d.add(testing::skippable("long", Cells{plane::testing::at(d.array({1}, plane::DType::i64), 0, 0)}, body));
  const std::string why = plane_of(node(d.graph(), at(0)), "x").why;
  EXPECT_THAT(why, ::testing::EndsWith("; in the body, 'n7': declared as read; and more"));
}

TEST(ExplainNode, OfTooManyPlanesIsRefused) {
  Description d;
  const View x = d.array({20'000});
  testing::Planes planes;
  for (int i = 0; i < 10'001; ++i) planes.emplace_back("p", slice(x, 0, i, 1));
  d.add(host("wide", planes, {}));
  EXPECT_EQ(explain(d.graph(), at(0), std::vector<StageSchedule>()).status().reason(), Reason::graph_limit);
}

TEST(ExplainNode, ListsTheEdgesOnBothSides) {
  Description d;
  const View x = d.array({8});
  for (const char* name : {"a", "b", "c"}) d.add(host(name, {{"x", x}}, {{"x", x}}));
  const NodeExplanation found = node(d.graph(), called("b"));
  EXPECT_THAT(found.in, ElementsAre(Edge{0, 1, "x", Hazard::raw}, Edge{0, 1, "x", Hazard::waw},
                                    Edge{0, 1, "x", Hazard::war}));
  EXPECT_THAT(found.out, ElementsAre(Edge{1, 2, "x", Hazard::raw}, Edge{1, 2, "x", Hazard::waw},
                                     Edge{1, 2, "x", Hazard::war}));
  EXPECT_THAT(found.neighbours, ElementsAre(Field(&NodeName::label, "a"), Field(&NodeName::label, "c")));
}

Graph group_of(std::int64_t samples, bool with_host) {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  std::vector<std::vector<v1::Node>> branches;
  for (const char* name : {"l", "r"}) {
    branches.push_back({launch(name, kernel, {{"x", d.array({samples})}, {"y", d.array({samples})}})});
  }
  if (with_host) branches[1].push_back(host("h", {}, {}));
  d.add_group(branches);
  return d.graph();
}

std::string why(const Graph& graph, int team) {
  return node(graph, at(0), schedule_of(graph, team)).schedule_why;
}

TEST(ExplainNode, SaysWhyItsStageRunsAsItDoes) {
  EXPECT_THAT(why(group_of(4096, false), 2), HasSubstr("at least 2 threads"));
  EXPECT_THAT(why(group_of(4096, false), 1), HasSubstr("only 1 thread"));
  EXPECT_THAT(why(group_of(4097, false), 2), HasSubstr("'l' has 4097 samples, more than 4096"));
  EXPECT_THAT(why(group_of(8, true), 2), HasSubstr("'h' is not a launch"));
  EXPECT_THAT(node(group_of(8, false), at(0)).schedule_why, HasSubstr("branch_tasks, if the team"));
}

TEST(ExplainMessage, CarriesTheStructure) {
  Description d;
  const View x = d.array({8});
  d.add(host("a", {}, {{"x", x}})).add(host("b", {{"x", x}}, {}));
  v1::Explanation message;
  to_message(pair(d.graph(), at(0), at(1)), message);
  EXPECT_EQ(message.pair().relation(), v1::RELATION_ORDERED);
  EXPECT_EQ(message.pair().meetings(0).shared().count(), 64);
  to_message(node(d.graph(), at(1)), message);
  EXPECT_EQ(message.node().in(0).plane(), "x");
  EXPECT_EQ(message.node().planes(0).bytes(), 64);
}

TEST(ExplainMessage, RefusesAReferenceToNothing) {
  EXPECT_EQ(read(v1::NodeReference()).status().reason(), Reason::bad_message);
}

}  // namespace
}  // namespace eagle::graph
