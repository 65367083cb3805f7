// Graphs: order, groups, conditionals, what can be looked at, and the states they go through.
#include "engine/view/explain_text.h"
#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

class Graphs : public OnEveryHost {
protected:
  // A host node that runs `body`.
  static Opaque node(std::function<void()> body, NamedArrays reads, NamedArrays writes) {
    return opaque(
        [body = std::move(body)] {
          body();
          return Status();
        },
        {std::move(reads), std::move(writes)});
  }
  static ArrayView view(std::vector<double>& values) {
    return {values.data(), DType::f64, 8, {static_cast<std::int64_t>(values.size())}, {8}, false, nullptr};
  }
  static void build(Graph& g) {
    const Status built = g.build();
    ASSERT_TRUE(built.ok()) << built.to_string();
  }
  // The same pictures wherever they are drawn, and the same words of explanation.
  static void expect_pictures_agree(const Graph& g) {
    for (const PictureFormat format : view::all_formats) {
      EXPECT_EQ(must(g.host_picture(format)), must(g.picture(format))) << view::name_of(format);
    }
    const auto count = static_cast<std::uint32_t>(g.node_labels().size());
    for (std::uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(must(g.host_explanation(i)), view::to_text(must(g.explain(i))));
      for (std::uint32_t j = i + 1; j < count; ++j) {
        EXPECT_EQ(must(g.host_explanation(i, j)), view::to_text(must(g.explain(i, j))));
      }
    }
  }
};
EAGLE_ON_EVERY_HOST(Graphs);

TEST_P(Graphs, TheFirstGraphOverPrivateArrays) {
  std::vector<double> x(8, 1.0);
  std::vector<double> y(8);
  std::vector<double> z(8);
  const auto twice = [&] {
    for (std::size_t i = 0; i < 8; ++i) y[i] = x[i] * 2.0;
  };
  const auto plus_one = [&] {
    for (std::size_t i = 0; i < 8; ++i) z[i] = y[i] + 1.0;
  };
  Graph g(session());
  ASSERT_TRUE(g.add_node(node(twice, {{"x", view(x)}}, {{"y", view(y)}}), "double").ok());
  ASSERT_TRUE(g.add_node(node(plus_one, {{"y", view(y)}}, {{"z", view(z)}}), "shift").ok());
  EXPECT_FALSE(g.built());
  EXPECT_TRUE(g.schedule().empty());
  build(g);
  ASSERT_TRUE(g.launch().ok());
  EXPECT_THAT(z, ::testing::Each(3.0));
  EXPECT_THAT(g.node_labels(), ::testing::ElementsAre("double", "shift"));
  EXPECT_THAT(must(g.edges()), ::testing::ElementsAre(Edge{0, 1, "y", Hazard::raw}));
  EXPECT_THAT(g.schedule(), ::testing::ElementsAre("work_share", "work_share"));
  EXPECT_THAT(must(g.show()), ::testing::HasSubstr("2 nodes"));
  expect_pictures_agree(g);
}

TEST_P(Graphs, AreListedAndDrawnByTheirHost) {
  const auto x = zeros<double>({8});
  Graph g(session(), {"listed"});
  ASSERT_TRUE(g.add_node(node([] {}, {}, {{"x", x}}), "only").ok());
  EXPECT_TRUE(must(session().graphs()).empty());
  build(g);
  ASSERT_TRUE(g.launch(3).ok());
  const std::vector<GraphInfo> graphs = must(session().graphs());
  ASSERT_EQ(graphs.size(), 1U);
  EXPECT_EQ(graphs[0].name, "listed");
  EXPECT_EQ(graphs[0].nodes, 1U);
  EXPECT_EQ(graphs[0].launches, 3U);
  EXPECT_EQ(must(session().picture(graphs[0], PictureFormat::svg)), must(g.to_svg()));
  GraphInfo other = graphs[0];
  other.graph += 100;
  EXPECT_EQ(session().picture(other, PictureFormat::text).status().reason(), Reason::unknown_graph);
}

TEST_P(Graphs, AreExplainedBeforeTheBuildAndWhenTheyRace) {
  const auto y = zeros<double>({8});
  Graph g(session());
  ASSERT_TRUE(
      g.add_group({{{{"L", node([] {}, {}, {{"p", y}})}}}, {{{"R", node([] {}, {{"q", y}}, {})}}}}).ok());
  const graph::PairExplanation pair = must(g.explain("L", "R"));
  EXPECT_EQ(pair.relation, graph::Relation::racing);
  EXPECT_EQ("build: " + pair.refusal, g.build().message());
  EXPECT_THAT(must(g.explain("L")).schedule_why, ::testing::HasSubstr("not a launch"));
  EXPECT_EQ(g.explain("M").status().reason(), Reason::bad_value);
  EXPECT_EQ(g.host_explanation("L").status().reason(), Reason::graph_state);
}

TEST_P(Graphs, TwoPlansAndAHostNodeRunInOrder) {
  const auto x = full<double>(100, 1.0);
  const auto y = zeros<double>({100});
  const auto z = zeros<double>({100});
  Graph g(session(), {"step"});
  ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", y}, {"a", 3.0}, {"b", 0.0}}}, "first").ok());
  ASSERT_TRUE(g.add_node(node([&] { y[0] = -1; }, {}, {{"y", y}}), "poke").ok());
  ASSERT_TRUE(g.add({affine(), {{"x", y}, {"y", z}, {"a", 1.0}, {"b", 10.0}}}, "second").ok());
  build(g);
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(z[0], 9.0);
  EXPECT_EQ(z[1], 13.0);
  EXPECT_THAT(must(g.edges()),
              ::testing::ElementsAre(Edge{0, 1, "y", Hazard::waw}, Edge{0, 2, "y", Hazard::raw},
                                     Edge{1, 2, "y", Hazard::raw}));
  expect_pictures_agree(g);
}

TEST_P(Graphs, LookTheSameOnEveryHost) {
  // The same graph over arrays of this session and of one in this process.
  const auto picture_and_edges = [](const Session& on) {
    const auto x = must(on.full<double>({64}, 1.0));
    const auto y = must(on.zeros<double>({64}));
    const auto z = must(on.zeros<double>({64}));
    const auto flag = must(on.zeros<std::int64_t>({2}));
    ArrayView cell = flag;
    cell.shape = {1};
    const auto kernel = affine();
    Graph g(on, {"look"});
    EXPECT_TRUE(g.add({kernel, {{"x", x}, {"y", x}, {"a", 1.0}, {"b", 1.0}}}, "seed").ok());
    EXPECT_TRUE(g.add_group({{{{"left", BoundPlan{kernel, {{"x", x}, {"y", y}, {"a", 2.0}, {"b", 0.0}}}}}},
                             {{{"right", BoundPlan{kernel, {{"x", x}, {"y", z}, {"a", 3.0}, {"b", 0.0}}}}}}})
                    .ok());
    EXPECT_TRUE(g.add_node(skippable({{"", node([] {}, {{"y", y}, {"z", z}}, {})}},
                                     {{"flag", cell}, std::nullopt, false}),
                           "combine")
                    .ok());
    std::string text = must(g.show());
    EXPECT_TRUE(g.build().ok());
    expect_pictures_agree(g);
    text += must(g.show());
    for (const Edge& edge : must(g.edges())) {
      text += std::to_string(edge.source) + "-" + std::to_string(edge.destination) + " " + edge.plane + " " +
              std::string(graph::name_of(edge.kind)) + "\n";
    }
    return text;
  };
  const Session here = must(eagle::local({static_cast<int>(must(session().info()).threads)}));
  EXPECT_EQ(picture_and_edges(session()), picture_and_edges(here));
}

TEST_P(Graphs, BranchesOfAGroupRunBeforeWhatFollows) {
  const auto x = full<double>(64, 1.0);
  const auto left = zeros<double>({64});
  const auto right = zeros<double>({64});
  const auto kernel = affine();
  Graph g(session());
  ASSERT_TRUE(g.add_group({{{{"l1", BoundPlan{kernel, {{"x", x}, {"y", left}, {"a", 2.0}, {"b", 0.0}}}},
                             {"l2", BoundPlan{kernel, {{"x", left}, {"y", left}, {"a", 1.0}, {"b", 1.0}}}}}},
                           {{{"r", BoundPlan{kernel, {{"x", x}, {"y", right}, {"a", 5.0}, {"b", 0.0}}}}}}})
                  .ok());
  double seen = 0;
  ASSERT_TRUE(
      g.add_node(node([&] { seen = left[63] + right[63]; }, {{"l", left}, {"r", right}}, {}), "join").ok());
  build(g);
  ASSERT_TRUE(g.launch(3).ok());
  EXPECT_EQ(seen, 8.0);
  ASSERT_EQ(g.schedule().size(), 2u);
  const char* const group = must(session().info()).threads >= 2 ? "branch_tasks" : "work_share";
  EXPECT_EQ(g.schedule()[0], on_gpu() ? "cuda_graph" : group);
  EXPECT_EQ(g.schedule()[1], on_gpu() ? "host_call" : "work_share");
  expect_pictures_agree(g);
}

TEST_P(Graphs, RacingBranchesAreRefusedByNameAndTheGraphStaysOpen) {
  const auto x = full<double>(64, 1.0);
  const auto y = zeros<double>({64});
  const auto kernel = affine();
  Graph g(session());
  ASSERT_TRUE(g.add_group({{{{"left", BoundPlan{kernel, {{"x", x}, {"y", y}, {"a", 2.0}, {"b", 0.0}}}}}},
                           {{{"right", BoundPlan{kernel, {{"x", y}, {"y", x}, {"a", 2.0}, {"b", 0.0}}}}}}})
                  .ok());
  for (int attempt = 0; attempt < 2; ++attempt) {
    expect_refused(g.build(), Reason::racing_siblings, {"left", "right", "'y'", "'x'"});
    EXPECT_FALSE(g.built());
    EXPECT_THAT(must(g.show()), ::testing::HasSubstr("left"));
    EXPECT_TRUE(must(g.edges()).empty()) << "siblings have no edges";
  }
  EXPECT_TRUE(g.add_node(node([] {}, {}, {})).ok());
  expect_works();
}

// ---- conditionals (values of the reference description's own examples)

class Conditionals : public Graphs {};
EAGLE_ON_EVERY_HOST(Conditionals);

TEST_P(Conditionals, AStepIsSkippedWhileItsFlagIsDown) {
  const auto flag = full<std::int64_t>(1, 1);
  int runs = 0;
  Graph g(session());
  ASSERT_TRUE(
      g.add_node(skippable({{"", node([&] { ++runs; }, {}, {})}}, {{"flag", flag}, std::nullopt, false}))
          .ok());
  build(g);
  std::vector<int> after;
  for (const std::int64_t raised : {1, 0, 1}) {
    flag[0] = raised;
    ASSERT_TRUE(g.launch().ok());
    after.push_back(runs);
  }
  EXPECT_THAT(after, ::testing::ElementsAre(1, 1, 2));
}

TEST_P(Conditionals, ALoopRunsWhileItsCellIsNotZero) {
  const auto live = full<std::int64_t>(1, 5);
  const auto x = full<double>(8, 0.0);
  Graph g(session());
  const BoundPlan count{affine(), {{"x", x}, {"y", x}, {"a", 1.0}, {"b", 1.0}}};
  ASSERT_TRUE(
      g.add_node(repeat_while({{"count", count}, {"down", node([&] { --live[0]; }, {}, {{"live", live}})}},
                              {{"live", live}, std::nullopt, false}, 64),
                 "loop")
          .ok());
  build(g);
  const auto report = must(g.launch());
  EXPECT_EQ(x[7], 5.0);
  EXPECT_EQ(live[0], 0);
  EXPECT_THAT(report.iterations, ::testing::ElementsAre(5));
  expect_pictures_agree(g);
}

TEST_P(Conditionals, ALoopStopsAtItsCapInEveryLaunch) {
  const auto live = full<std::int64_t>(1, 1000);
  Graph g(session());
  ASSERT_TRUE(g.add_node(repeat_while({{"", node([&] { --live[0]; }, {}, {{"live", live}})}},
                                      {{"live", live}, std::nullopt, false}, 64))
                  .ok());
  build(g);
  ASSERT_TRUE(g.launch(3).ok());
  EXPECT_EQ(live[0], 808);
}

TEST_P(Conditionals, GuardsCompareWithABaselineAndCanBeTurnedAround) {
  const auto count = full<std::int64_t>(1, 4);
  const auto baseline = full<std::int64_t>(1, 4);
  const auto ready = full<bool>(1, false);
  int differs = 0;
  int not_ready = 0;
  Graph g(session());
  ASSERT_TRUE(
      g.add_node(
           skippable({{"", node([&] { ++differs; }, {}, {})}},
                     {{"count", count}, std::pair<std::string, ArrayView>("baseline", baseline), false}))
          .ok());
  ASSERT_TRUE(g.add_node(skippable({{"", node([&] { ++not_ready; }, {}, {})}},
                                   {{"ready", ready}, std::nullopt, true}))
                  .ok());
  build(g);
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(differs, 0);
  EXPECT_EQ(not_ready, 1);
  count[0] = 5;
  ready[0] = true;
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(differs, 1);
  EXPECT_EQ(not_ready, 1);
}

TEST_P(Conditionals, NestAndSeeWhatEarlierNodesWrote) {
  const auto outer = full<std::int64_t>(1, 2);
  const auto inner = zeros<std::int64_t>({1});
  int runs = 0;
  Graph g(session());
  const NodeKind loop = repeat_while({{"work", node(
                                                   [&] {
                                                     ++runs;
                                                     --inner[0];
                                                   },
                                                   {}, {{"inner", inner}})}},
                                     {{"inner", inner}, std::nullopt, false}, 10);
  ASSERT_TRUE(g.add_node(repeat_while({{"refill", node([&] { inner[0] = 3; }, {}, {{"inner", inner}})},
                                       {"inner", loop},
                                       {"down", node([&] { --outer[0]; }, {}, {{"outer", outer}})}},
                                      {{"outer", outer}, std::nullopt, false}, 10))
                  .ok());
  build(g);
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(runs, 6);
}

TEST_P(Conditionals, BelongToOneGraphForAsLongAsItLives) {
  const auto flag = full<std::int64_t>(1, 1);
  const NodeKind conditional = skippable({{"", node([] {}, {}, {})}}, {{"flag", flag}, std::nullopt, false});
  {
    Graph first(session());
    ASSERT_TRUE(first.add_node(conditional).ok());
    Graph second(session());
    expect_refused(second.add_node(conditional), Reason::conditional_in_use, {"another graph"});
  }
  Graph third(session());
  EXPECT_TRUE(third.add_node(conditional).ok()) << "a graph that is gone holds nothing";
}

// ---- states

class GraphStates : public Graphs {};
EAGLE_ON_EVERY_HOST(GraphStates);

TEST_P(GraphStates, TheOrderOfCallsIsEnforced) {
  Graph g(session());
  expect_refused(g.build(), Reason::graph_state, {"build", "empty"});
  expect_refused(g.launch().status(), Reason::graph_state, {"launch", "build()"});
  ASSERT_TRUE(g.add_node(node([] {}, {}, {})).ok());
  expect_refused(g.launch().status(), Reason::graph_state, {"launch", "build()"});
  build(g);
  expect_refused(g.build(), Reason::graph_state, {"build", "already"});
  expect_refused(g.add_node(node([] {}, {}, {})), Reason::graph_state, {"add_node"});
  EXPECT_TRUE(g.launch().ok());
}

TEST_P(GraphStates, LaunchesRepeatAsOftenAsAsked) {
  int runs = 0;
  Graph g(session());
  ASSERT_TRUE(g.add_node(node([&] { ++runs; }, {}, {})).ok());
  build(g);
  expect_refused(g.launch(-1).status(), Reason::bad_value, {"launch", "-1"});
  EXPECT_EQ(must(g.launch(0)).launches, 0);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(must(g.launch(7)).launches, 7);
  EXPECT_EQ(runs, 7);
}

TEST_P(GraphStates, AFailedAddLeavesTheGraphAsItWas) {
  const auto x = full<double>(8, 1.0);
  const auto short_one = zeros<double>({7});
  Graph g(session());
  ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", x}, {"a", 2.0}, {"b", 0.0}}}, "good").ok());
  expect_refused(g.add({affine(), {{"x", x}, {"y", short_one}, {"a", 2.0}, {"b", 0.0}}}, "bad"),
                 Reason::sample_mismatch, {"node 1", "'bad'", "'x'", "'y'", "8", "7"});
  EXPECT_THAT(g.node_labels(), ::testing::ElementsAre("good"));
  build(g);
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(x[0], 2.0);
}

TEST_P(GraphStates, AGraphKeepsItsArrays) {
  const auto result = zeros<double>({8});
  Graph g(session());
  {
    const auto x = full<double>(8, 4.0);
    ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", result}, {"a", 1.0}, {"b", 0.0}}}).ok());
  }
  const auto other = full<double>(8, -1.0);  // must not get the same bytes
  build(g);
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(result[7], 4.0);
}

TEST_P(GraphStates, ThousandsOfNodesAreAddedAndRun) {
  const auto x = zeros<double>({8});
  const auto kernel = affine();
  Graph g(session());
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(g.add({kernel, {{"x", x}, {"y", x}, {"a", 1.0}, {"b", 1.0}}}).ok());
  }
  build(g);
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(x[7], 2000.0);
}

}  // namespace
}  // namespace eagle::conformance
