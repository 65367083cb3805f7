#include "engine/view/ordering.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/view/random_graph.h"
#include "engine/view/testing.h"

namespace eagle::view {
namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;  // (after, before)
using testing::Sketch;

std::vector<Pair> reduced(const graph::Graph& graph) {
  const std::vector<graph::Leaf> leaves = graph::leaves(graph);
  graph::Work work;
  std::vector<Pair> pairs;
  const std::vector<Order> orders = Ordering(leaves, work).reduced().value();
  for (const Order& order : orders) pairs.emplace_back(order.after, order.before);
  return pairs;
}

// The slow way: every pair with an edge and no path of two or more edges between them.
std::vector<Pair> reduced_by_definition(const graph::Graph& graph) {
  const std::size_t count = graph::leaves(graph).size();
  std::vector<std::vector<bool>> edge(count, std::vector<bool>(count));
  for (const graph::Edge& found : graph::edges(graph)) edge[found.source][found.destination] = true;
  std::vector<std::vector<bool>> path = edge;
  std::vector<std::vector<bool>> detour(count, std::vector<bool>(count));
  for (std::size_t length = 1; length < count; ++length) {
    for (std::size_t i = 0; i + length < count; ++i) {
      for (std::size_t k = i + 1; k < i + length; ++k) {
        if (path[i][k] && path[k][i + length]) detour[i][i + length] = path[i][i + length] = true;
      }
    }
  }
  std::vector<Pair> pairs;
  for (std::uint32_t j = 0; j < count; ++j) {
    for (std::uint32_t i = 0; i < j; ++i) {
      if (edge[i][j] && !detour[i][j]) pairs.emplace_back(j, i);
    }
  }
  return pairs;
}

TEST(Ordering, InPlaceNodesAreAChain) {
  Sketch sketch;
  for (int i = 0; i < 4; ++i) sketch.add(sketch.host("n", {"x"}, {"x"}));
  EXPECT_EQ(reduced(sketch.graph()), (std::vector<Pair>{{1, 0}, {2, 1}, {3, 2}}));
}

TEST(Ordering, AWriteInOneBranchDoesNotHideTheReaderFromTheOther) {
  Sketch sketch;
  sketch.add(sketch.host("reader", {"x"}, {}));
  sketch.add_group({{sketch.host("a", {}, {"x"})}, {sketch.host("b", {}, {"x"})}});
  EXPECT_EQ(reduced(sketch.graph()), (std::vector<Pair>{{1, 0}, {2, 0}}));
}

TEST(Ordering, AWriteOfAPartKeepsTheRest) {
  Sketch sketch;
  sketch.add(sketch.host("all", {}, {"x"}));
  sketch.add(sketch.host("part", {}, {"x[0:4]"}));
  sketch.add(sketch.host("rest", {"x[4:8]"}, {}));
  EXPECT_EQ(reduced(sketch.graph()), (std::vector<Pair>{{1, 0}, {2, 0}}));
}

TEST(Ordering, IsTheReductionOfAllEdgesOfRandomGraphs) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const testing::RandomGraph random(seed);
    ASSERT_EQ(reduced(random.graph()), reduced_by_definition(random.graph()));
  }
}

TEST(Ordering, SaysOfAPairWhatEdgesSays) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const testing::RandomGraph random(seed);
    const std::vector<graph::Leaf> leaves = graph::leaves(random.graph());
    graph::Work work;
    const Ordering ordering(leaves, work);
    std::vector<graph::Edge> all;
    for (std::uint32_t i = 0; i < leaves.size(); ++i) {
      for (std::uint32_t j = i + 1; j < leaves.size(); ++j) {
        if (graph::siblings(leaves, i, j)) continue;
        for (graph::Edge& edge : ordering.hazards({i, j})) all.push_back(std::move(edge));
      }
    }
    ASSERT_EQ(all, graph::edges(random.graph()));
  }
}

TEST(Ordering, WithoutWorkThereIsNoneRatherThanHalfOfOne) {
  Sketch sketch;
  for (int i = 0; i < 4; ++i) sketch.add(sketch.host("n", {"x[0:5]"}, {"x[3:8]"}));
  const std::vector<graph::Leaf> leaves = graph::leaves(sketch.graph());
  graph::Work work{0};
  EXPECT_FALSE(Ordering(leaves, work).reduced().has_value());
}

}  // namespace
}  // namespace eagle::view
