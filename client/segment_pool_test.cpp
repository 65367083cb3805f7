#include "client/segment_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace eagle {
namespace {

TEST(SegmentPool, RangesAreAlignedAsItWasTold) {
  SegmentPool pool(256);
  pool.add_segment(1024);
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto range = pool.take(1 + i);
    ASSERT_TRUE(range.has_value());
    EXPECT_EQ(range->offset, 256 * i);
    EXPECT_EQ(range->bytes, 256u);
  }
  EXPECT_FALSE(pool.take(1).has_value());
}

TEST(SegmentPool, HasNothingBeforeItsFirstSegment) {
  SegmentPool pool;
  EXPECT_FALSE(pool.take(1));
}

TEST(SegmentPool, RangesAreAlignedAndFollowEachOther) {
  SegmentPool pool;
  pool.add_segment(1024);
  EXPECT_EQ(pool.take(1), (SegmentPool::Range{0, 0, 64}));
  EXPECT_EQ(pool.take(65), (SegmentPool::Range{0, 64, 128}));
  EXPECT_EQ(pool.take(64), (SegmentPool::Range{0, 192, 64}));
  EXPECT_EQ(pool.taken_bytes(), 256u);
}

TEST(SegmentPool, RefusesWhatNoSegmentCanHold) {
  SegmentPool pool;
  pool.add_segment(256);
  EXPECT_FALSE(pool.take(257));
  EXPECT_TRUE(pool.take(256));
  EXPECT_FALSE(pool.take(1));
}

TEST(SegmentPool, NeighboursJoinWhenTheyComeBackInAnyOrder) {
  std::vector<std::size_t> order = {0, 1, 2, 3};
  do {
    SegmentPool pool;
    pool.add_segment(256);
    std::vector<SegmentPool::Range> ranges;
    for (int i = 0; i < 4; ++i) ranges.push_back(*pool.take(64));
    for (const std::size_t i : order) pool.give_back(ranges[i]);
    EXPECT_EQ(pool.take(256), (SegmentPool::Range{0, 0, 256}));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(SegmentPool, TakesTheSmallestRangeThatFits) {
  SegmentPool pool;
  pool.add_segment(1024);
  const auto large = *pool.take(256);
  const auto wall = *pool.take(64);
  const auto small = *pool.take(128);
  ASSERT_TRUE(pool.take(1024 - 448));
  pool.give_back(large);
  pool.give_back(small);
  EXPECT_EQ(pool.take(100), small);
  EXPECT_NE(pool.take(64), wall);
}

TEST(SegmentPool, KeepsOneEmptySegmentAndDropsTheNext) {
  SegmentPool pool;
  pool.add_segment(64);
  pool.add_segment(64);
  const auto a = *pool.take(64);
  const auto b = *pool.take(64);
  EXPECT_EQ(pool.give_back(a), std::nullopt);
  EXPECT_EQ(pool.give_back(b), b.segment);
  EXPECT_EQ(pool.segments(), 1u);
  EXPECT_EQ(pool.take(64)->segment, a.segment);
  EXPECT_FALSE(pool.take(64));
}

TEST(SegmentPool, KeepsNoneOnceItIsTold) {
  SegmentPool pool;
  pool.add_segment(64);
  pool.add_segment(64);
  const auto a = *pool.take(64);
  const auto b = *pool.take(64);
  pool.give_back(a);
  EXPECT_EQ(pool.drop_spare(), a.segment);
  EXPECT_EQ(pool.drop_spare(), std::nullopt);
  EXPECT_EQ(pool.give_back(b), b.segment);
  EXPECT_EQ(pool.segments(), 0u);
}

// Against a byte map: no two live ranges share a byte, and everything that is given back can be had again.
TEST(SegmentPool, RandomTrafficNeverHandsOutAByteTwice) {
  constexpr std::uint64_t segment_bytes = 4096;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  SegmentPool pool;
  std::map<SegmentPool::SegmentId, std::vector<bool>> used;
  std::vector<SegmentPool::Range> live;
  const auto mark = [&](const SegmentPool::Range& range, bool value) {
    for (std::uint64_t i = range.offset; i < range.offset + range.bytes; ++i) {
      ASSERT_NE(used.at(range.segment).at(i), value);
      used.at(range.segment).at(i) = value;
    }
  };
  for (int round = 0; round < 5000; ++round) {
    if (live.empty() || random() % 5 < 3) {
      const std::uint64_t bytes = 1 + random() % 700;
      auto range = pool.take(bytes);
      if (!range) {
        used[pool.add_segment(segment_bytes)].resize(segment_bytes);
        range = pool.take(bytes);
      }
      ASSERT_TRUE(range);
      ASSERT_GE(range->bytes, bytes);
      ASSERT_EQ(range->offset % SegmentPool::default_alignment, 0u);
      mark(*range, true);
      live.push_back(*range);
    } else {
      const std::size_t i = random() % live.size();
      mark(live[i], false);
      if (const auto dropped = pool.give_back(live[i])) used.erase(*dropped);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (const auto& range : live) pool.give_back(range);
  EXPECT_EQ(pool.taken_bytes(), 0u);
  EXPECT_EQ(pool.segments(), 1u);
}

}  // namespace
}  // namespace eagle
