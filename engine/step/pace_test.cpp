#include "engine/step/pace.h"

#include <gtest/gtest.h>

#include <limits>

namespace eagle::step {
namespace {

TEST(TileSize, IsAWholeNumberOfBlocks) {
  for (const int lanes : {1, 4, 8, 24, 32, 96}) {
    for (const std::int64_t samples : {0, 1, 1000, 100'000}) {
      EXPECT_EQ(tile_size(samples, 2, lanes) % lanes, 0) << lanes << " " << samples;
      EXPECT_GE(tile_size(samples, 2, lanes), tile_grain);
    }
  }
}

TEST(TileSize, IsAtMostWhatTheCacheHolds) {
  EXPECT_EQ(tile_size(1'000'000, 2, 8), tile_samples);
  EXPECT_EQ(tile_size(std::numeric_limits<std::int64_t>::max(), 64, 32), tile_samples);
}

TEST(TileSize, GivesEveryThreadOfALargeTeamSomething) {
  const std::int64_t size = tile_size(8192, 16, 8);
  EXPECT_EQ(size, 128);  // 64 tiles for 16 threads
}

TEST(PassSteps, FillAPass) {
  // 50 ms at 1 us a step.
  EXPECT_EQ(pass_steps({0, 1e-6}, 1'000'000), 50'000);
  // What is spent on moving state is not spent on stepping.
  EXPECT_EQ(pass_steps({10e-3, 1e-6}, 1'000'000), 40'000);
}

TEST(PassSteps, SteppingOutweighsMovingState) {
  // 100 ms for one visit: shorter passes would do little else.
  EXPECT_EQ(pass_steps({0.1, 1e-3}, 1'000'000), 200);
}

TEST(PassSteps, StayWithinWhatIsLeft) {
  EXPECT_EQ(pass_steps({0, 1e-6}, 10), 10);
  EXPECT_EQ(pass_steps({0, 0}, std::numeric_limits<std::int64_t>::max()), 50'000'000'000);
  EXPECT_EQ(pass_steps({0, 1e-6}, 70'000), 70'000);  // a rest of 20,000 is not worth a pass
  EXPECT_EQ(pass_steps({0, 1e-6}, 80'000), 50'000);
}

TEST(PassSteps, AreAtLeastOne) { EXPECT_EQ(pass_steps({0, 10.0}, 100), 1); }

TEST(AtMost, DoesNotOverflow) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(at_most(0, most, one_pass_sample_steps));
  EXPECT_TRUE(at_most(4'000'000, 1, one_pass_sample_steps));
  EXPECT_FALSE(at_most(4'000'001, 1, one_pass_sample_steps));
  EXPECT_FALSE(at_most(most, most, one_pass_sample_steps));
}

}  // namespace
}  // namespace eagle::step
