#include "engine/plane/shared_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <vector>

#include "engine/plane/overlap.h"
#include "engine/plane/testing.h"

namespace eagle::plane {
namespace {

using testing::array;
using testing::at;
using testing::slice;

void expect_shared(const View& a, const View& b, std::int64_t first, std::int64_t count) {
  const SharedBytes found = shared_bytes(a, b);
  EXPECT_EQ(found.first, first);
  EXPECT_EQ(found.count, count);
  EXPECT_TRUE(found.exact);
}

TEST(SharedBytes, OfAnArrayWithItsTailIsTheTail) {
  const View x = array({8});
  expect_shared(x, slice(x, 0, 4, 4), 32, 32);
}

TEST(SharedBytes, OfEvenAndOddElementsAreNone) {
  const View x = array({8});
  expect_shared(slice(x, 0, 0, 4, 2), slice(x, 0, 1, 4, 2), 0, 0);
}

TEST(SharedBytes, OfEveryThirdAndEveryFourthElement) {
  const View x = array({24});  // elements 0, 12
  expect_shared(slice(x, 0, 0, 8, 3), slice(x, 0, 0, 6, 4), 0, 16);
}

TEST(SharedBytes, OfAReversedView) {
  const View x = array({8});
  expect_shared(slice(x, 0, 7, 4, -1), slice(x, 0, 0, 6), 32, 16);
}

TEST(SharedBytes, OfARowWithAColumnIsOneElement) {
  const View m = array({6, 4});
  expect_shared(at(m, 0, 2), at(m, 1, 3), (2 * 4 + 3) * 8, 8);
}

TEST(SharedBytes, OfColumnBlocksOfAHugeMatrixAreCountedAtOnce) {
  const View m = array({50'000'000, 8});
  const SharedBytes found = shared_bytes(slice(m, 1, 0, 4), slice(slice(m, 1, 2, 4), 0, 10, 1000));
  EXPECT_EQ(found.first, (10 * 8 + 2) * 8);
  EXPECT_EQ(found.count, 1000 * 2 * 8);
  EXPECT_TRUE(found.exact);
  EXPECT_LT(found.steps, 100);
}

TEST(SharedBytes, OfDifferentPlanesAreNone) { expect_shared(array({8}), array({8}, DType::f64, 0, 1), 0, 0); }

TEST(SharedBytes, OfABroadcastViewCountOnce) {
  View x = array({5});
  x.strides = {0};
  EXPECT_EQ(touched_bytes(x).count, 8);
}

TEST(SharedBytes, PastTheCapSayThatTheyAreNotExact) {
  const View x = array({1'000'000});
  const SharedBytes found = shared_bytes(slice(x, 0, 0, 333'333, 3), slice(x, 0, 0, 200'000, 5), 100);
  EXPECT_FALSE(found.exact);
  EXPECT_LE(found.steps, 101);
}

TEST(SharedBytes, OfRandomViewsAreThoseThatListingFinds) {
  const std::uint64_t seed = 4711;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    const View a = testing::random_view(random, 400);
    const View b = round % 10 == 0 ? a : testing::random_view(random, 400);
    const std::set<std::int64_t> in_a = testing::bytes_touched(a);
    const std::set<std::int64_t> in_b = testing::bytes_touched(b);
    std::vector<std::int64_t> both;
    if (elements(a) > 0 && elements(b) > 0) {
      std::ranges::set_intersection(in_a, in_b, std::back_inserter(both));
    }
    const SharedBytes found = shared_bytes(a, b);
    ASSERT_TRUE(found.exact);
    ASSERT_EQ(found.count, static_cast<std::int64_t>(both.size())) << to_string(a) << "\n" << to_string(b);
    ASSERT_EQ(found.first, both.empty() ? 0 : both.front()) << to_string(a) << "\n" << to_string(b);
    ASSERT_EQ(shared_bytes_from_the_end(a, b).first, both.empty() ? 0 : both.back());
    ASSERT_EQ(found.count > 0, overlap(a, b).overlaps);
  }
}

}  // namespace
}  // namespace eagle::plane
