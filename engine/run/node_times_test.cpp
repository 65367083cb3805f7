#include "engine/run/node_times.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "engine/run/built_graph.h"
#include "engine/run/testing.h"

namespace eagle::run {
namespace {

using eagle::testing::Array;
using eagle::testing::GraphScene;

TEST(MeasuredReplays, AreTheFirstAndThenOneInEachPeriod) {
  MeasuredReplays replays;
  const Ticks period = ticks_of(MeasuredReplays::period_s);
  EXPECT_TRUE(replays.begins(1'000));
  EXPECT_FALSE(replays.begins(1'001));
  EXPECT_FALSE(replays.begins(1'000 + period - 1));
  EXPECT_TRUE(replays.begins(1'000 + period));
  EXPECT_FALSE(replays.begins(1'001 + period));
}

TEST(MeasuredReplays, TheNewestCountMost) {
  MeasuredReplays replays;
  for (std::uint64_t i = 1; i < MeasuredReplays::remembered; ++i) EXPECT_FALSE(replays.ends());
  EXPECT_TRUE(replays.ends());
  EXPECT_EQ(replays.count(), MeasuredReplays::remembered / 2);
  EXPECT_FALSE(replays.ends());
}

// b = 2 a + 1 twice in one group of launches, then the client, then a copy back.
struct Chain {
  std::vector<double> a = std::vector<double>(1'000, 1.0);
  std::vector<double> b = std::vector<double>(1'000, 0.0);
  GraphScene scene;

  Chain() {
    const std::uint32_t kernel = scene.kernel(eagle::testing::affine());
    const std::uint32_t in_place = scene.kernel(eagle::testing::affine_in_place());
    const Array from = scene.array(a);
    const Array to = scene.array(b);
    eagle::testing::fill(*eagle::testing::add_node(scene.message, "line").mutable_kernel(), kernel,
                         {{"a", 2.0}, {"b", 1.0}, {"x", from}, {"y", to}});
    eagle::testing::fill(*eagle::testing::add_node(scene.message, "again").mutable_kernel(), in_place,
                         {{"a", 2.0}, {"b", 1.0}, {"x", to}});
    v1::HostNode& host = *eagle::testing::add_node(scene.message, "ask").mutable_host();
    host.set_call(7);
    host.set_tier(v1::HOST_TIER_CAPTURED);
    v1::NamedView& read = *host.add_reads();
    read.set_name("b");
    eagle::testing::set_view(*read.mutable_view(), to);
    v1::Copy& copy = *eagle::testing::add_node(scene.message, "back").mutable_copy();
    eagle::testing::set_view(*copy.mutable_source(), to);
    eagle::testing::set_view(*copy.mutable_destination(), from);
  }
};

TEST(NodeTimes, NameEveryNodeThatWorks) {
  const auto engine = eagle::testing::make_engine(2);
  Chain chain;
  const auto graph = eagle::testing::build(*engine, chain.scene);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->times().replays, 0u);

  Replay replay(*graph, 1, nullptr);
  auto next = eagle::testing::advance(replay);
  ASSERT_TRUE(next.ok());
  ASSERT_EQ(*next, Replay::Next::host_call);
  next = eagle::testing::advance(replay);
  ASSERT_TRUE(next.ok());
  ASSERT_EQ(*next, Replay::Next::done);

  const NodeTimes times = graph->times();
  EXPECT_EQ(times.replays, 1u);
  std::vector<std::string> labels;
  for (const NodeTime& time : times.nodes) {
    labels.push_back(time.node->label);
    EXPECT_GT(time.seconds, 0) << time.node->label;
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"line", "again", "back", "ask"})) << "kind by kind";
  EXPECT_EQ(times.nodes[0].together, 2u) << "one function";
  EXPECT_EQ(times.nodes[1].seconds, times.nodes[0].seconds);
  EXPECT_EQ(times.nodes[2].together, 1u);
}

TEST(NodeTimes, OfAReplayThatIsNotMeasuredAddNothing) {
  const auto engine = eagle::testing::make_engine(1);
  std::vector<std::int64_t> n(100, 0);
  GraphScene scene;
  const std::uint32_t kernel = scene.kernel(eagle::testing::counter());
  eagle::testing::fill(*eagle::testing::add_node(scene.message, "count").mutable_kernel(), kernel,
                       {{"step", std::int64_t{1}}, {"n", scene.array(n)}});
  const auto graph = eagle::testing::build(*engine, scene);
  ASSERT_TRUE(graph);
  Replay replay(*graph, 100, nullptr);  // of one turn only the first replay may be measured
  ASSERT_TRUE(eagle::testing::advance(replay).ok());
  EXPECT_EQ(n[0], 100);
  EXPECT_GE(graph->times().replays, 1u);
  EXPECT_LT(graph->times().replays, 20u) << "a turn may end early, on a busy machine";
}

}  // namespace
}  // namespace eagle::run
