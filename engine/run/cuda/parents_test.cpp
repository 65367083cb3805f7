#include "engine/run/cuda/parents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace eagle::run::cuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Parents = std::vector<std::vector<std::uint32_t>>;

using Order = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

TEST(Parents, AreTheEdgesThatNoOtherPathSays) {
  // A chain of three with its shortcut, and a leaf of its own.
  const Order edges = {{0, 1}, {0, 2}, {1, 2}};
  EXPECT_THAT(parents_of(edges, 4), ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1), IsEmpty()));
}

TEST(Parents, OfADiamondAreBothSides) {
  const Order edges = {{0, 1}, {0, 2}, {0, 3}, {1, 3}, {2, 3}};
  EXPECT_THAT(parents_of(edges, 4)[3], ElementsAre(1, 2));
}

TEST(Parents, OfAPairThatIsSaidTwiceIsOne) {
  const Order edges = {{0, 1}, {0, 1}};
  EXPECT_THAT(parents_of(edges, 2)[1], ElementsAre(0));
}

// By leaf, those that come before it.
std::vector<std::set<std::uint32_t>> before(const Parents& parents) {
  std::vector<std::set<std::uint32_t>> all(parents.size());
  for (std::size_t leaf = 0; leaf < parents.size(); ++leaf) {
    for (const std::uint32_t parent : parents[leaf]) {
      all[leaf].insert(parent);
      all[leaf].insert(all[parent].begin(), all[parent].end());
    }
  }
  return all;
}

TEST(Parents, OrderWhatTheEdgesOrderAndNoneCanBeLeftOut) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::uint32_t leaves = 2 + random() % 14;
    Order edges;
    Parents whole(leaves);
    for (std::uint32_t later = 0; later < leaves; ++later) {
      for (std::uint32_t earlier = 0; earlier < later; ++earlier) {
        if (random() % 3 != 0) continue;
        edges.emplace_back(earlier, later);
        whole[later].push_back(earlier);
      }
    }
    const Parents parents = parents_of(edges, leaves);
    const auto wanted = before(whole);
    EXPECT_EQ(before(parents), wanted);
    for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
      for (std::size_t i = 0; i < parents[leaf].size(); ++i) {
        Parents fewer = parents;
        fewer[leaf].erase(fewer[leaf].begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_NE(before(fewer), wanted);
      }
    }
  }
}

}  // namespace
}  // namespace eagle::run::cuda
