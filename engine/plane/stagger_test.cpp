#include "engine/plane/stagger.h"

#include <gtest/gtest.h>

#include <set>

namespace eagle::plane {
namespace {

TEST(Stagger, WhatIsSetAsideHoldsTheArrayAndIsWholeLines) {
  for (std::uint64_t bytes = 1; bytes < 40'000; ++bytes) {
    const std::uint64_t aside = staggered(bytes);
    ASSERT_EQ(aside % stagger::line, 0u) << bytes;
    ASSERT_GE(aside, bytes);
    ASSERT_LT(aside, bytes + 448) << bytes;
  }
}

// In a chain each array is read or written next to the one before: those two must not be at one place, nor
// may many fall together.
TEST(Stagger, ArraysOfOneSizeOneBehindTheOtherBeginApart) {
  for (std::uint64_t bytes = stagger::period; bytes < 70'000; bytes += 8) {
    const std::uint64_t between = staggered(bytes) % stagger::page;
    ASSERT_GE(between, stagger::apart) << bytes;
    ASSERT_LE(between, stagger::page - stagger::apart) << bytes;
    std::multiset<std::uint64_t> places;  // of sixteen
    for (std::uint64_t i = 0; i < 16; ++i) places.insert(i * staggered(bytes) % stagger::page);
    for (const std::uint64_t place : places) ASSERT_LE(places.count(place), 4u) << bytes;
  }
}

TEST(Stagger, SmallArraysTakeNoMoreThanTheirLines) {
  EXPECT_EQ(staggered(1), 64u);
  EXPECT_EQ(staggered(64), 64u);
  EXPECT_EQ(staggered(960), 960u);
}

TEST(Stagger, ArraysWithPagesOfTheirOwnUseEachLineOfAPageOnceInTurn) {
  std::set<std::uint64_t> places;
  for (std::uint64_t n = 0; n < stagger::page / stagger::line; ++n) {
    EXPECT_EQ(stagger_of(n) % stagger::line, 0u);
    EXPECT_LT(stagger_of(n), stagger::page);
    places.insert(stagger_of(n));
  }
  EXPECT_EQ(places.size(), stagger::page / stagger::line);
}

}  // namespace
}  // namespace eagle::plane
