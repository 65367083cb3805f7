#include "client/retained_maps.h"

#include <gtest/gtest.h>

namespace eagle {
namespace {

constexpr std::uint64_t bytes = RetainedMaps::least_bytes;

plane::Memory memory(std::uint64_t size = bytes) { return *plane::Memory::create(size, "x"); }

TEST(RetainedMaps, GiveAMapBackOnceToWhoHasThatMemoryNow) {
  RetainedMaps maps;
  plane::Memory first = memory();
  const std::byte* const data = first.data();
  EXPECT_FALSE(maps.keep({1, 7}, std::move(first)));
  EXPECT_FALSE(maps.take({1, 8}, bytes)) << "of another generation";
  EXPECT_FALSE(maps.take({1, 7}, bytes + 1));
  const auto taken = maps.take({1, 7}, bytes);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->data(), data);
  EXPECT_FALSE(maps.take({1, 7}, bytes));
}

TEST(RetainedMaps, AreBounded) {
  RetainedMaps maps;
  for (std::uint64_t id = 1; id <= RetainedMaps::most; ++id) EXPECT_FALSE(maps.keep({id, 1}, memory()));
  EXPECT_TRUE(maps.keep({100, 1}, memory())) << "the oldest goes";
  EXPECT_FALSE(maps.take({1, 1}, bytes));
  EXPECT_TRUE(maps.take({2, 1}, bytes));
}

TEST(RetainedMaps, AreNotMadeOfSmallPlanes) {
  RetainedMaps maps;
  EXPECT_TRUE(maps.keep({1, 1}, memory(bytes - 1)));
}

}  // namespace
}  // namespace eagle
