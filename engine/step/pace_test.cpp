#include "engine/step/pace.h"

#include <gtest/gtest.h>

#include <limits>

namespace eagle::step {
namespace {

TEST(TileSize, IsAWholeNumberOfBlocks) {
  for (const int lanes : {1, 4, 8, 24, 32, 96}) {
    for (const std::int64_t samples : {0, 1, 1000, 100'000}) {
      EXPECT_EQ(tile_size(samples, 2, lanes, 40) % lanes, 0) << lanes << " " << samples;
      EXPECT_GE(tile_size(samples, 2, lanes, 40), tile_grain);
    }
  }
}

TEST(TileSize, IsAtMostWhatTheCacheHolds) {
  EXPECT_EQ(tile_size(1'000'000, 2, 8, 8), tile_samples);
  EXPECT_EQ(tile_size(std::numeric_limits<std::int64_t>::max(), 64, 32, 0), tile_samples);
  EXPECT_EQ(tile_size(1'000'000, 2, 8, 48), tile_bytes / 48);
  EXPECT_EQ(tile_size(1'000'000, 2, 8, 1'000'000), tile_grain);
}

TEST(TileSize, GivesEveryThreadOfALargeTeamSomething) {
  const std::int64_t size = tile_size(8192, 16, 8, 8);
  EXPECT_EQ(size, 128);  // 64 tiles for 16 threads
}

TEST(PassSteps, FillAPass) {
  // 10 ms at 1 us a step.
  EXPECT_EQ(pass_steps({0, 1e-6}, 1'000'000), 10'000);
  // What is spent on moving state is not spent on stepping.
  EXPECT_EQ(pass_steps({3e-3, 1e-6}, 1'000'000), 7'000);
}

TEST(PassSteps, SteppingOutweighsMovingState) {
  // 100 ms for one visit: shorter passes would do little else.
  EXPECT_EQ(pass_steps({0.1, 1e-3}, 1'000'000), 200);
}

TEST(PassSteps, StayWithinWhatIsLeft) {
  EXPECT_EQ(pass_steps({0, 1e-6}, 10), 10);
  EXPECT_EQ(pass_steps({0, 0}, std::numeric_limits<std::int64_t>::max()), 10'000'000'000);
  EXPECT_EQ(pass_steps({0, 1e-6}, 14'000), 14'000);  // a rest of 4,000 is not worth a pass
  EXPECT_EQ(pass_steps({0, 1e-6}, 16'000), 10'000);
}

TEST(LongestWindow, IsBoundedInTime) {
  EXPECT_EQ(longest_window(1e-6, 500), 500);
  EXPECT_EQ(longest_window(1.0, 500), 1);
  EXPECT_EQ(longest_window(0, 64), 16);  // not known: so many sample steps
  EXPECT_EQ(longest_window(0, 1024), 1);
  EXPECT_EQ(longest_window(0, 1'000'000'000), 1);
}

TEST(Levelling, IsDoneWhereItIsSoonDone) {
  EXPECT_TRUE(levelling_pays({.took_s = 0.012, .done = 1000, .missing = 400}));
  EXPECT_FALSE(levelling_pays({.took_s = 0.012, .done = 1000, .missing = 600}));
  EXPECT_FALSE(levelling_pays({.took_s = 0.012, .done = 1000, .missing = 0}));
  EXPECT_FALSE(levelling_pays({.took_s = 0.012, .done = 0, .missing = 1}));  // nobody knows how long
}

// 16 blocks of 32 lanes, a step of one block takes 1 ns.
constexpr Thinning half_gone = {.blocks = 16,
                                .packed = 8,
                                .live = 256,
                                .finished = 64,
                                .window = 64,
                                .left = 1'000'000,
                                .block_step_s = 1e-9,
                                .move_s = 0.9e-6};

TEST(PackingPays, WhereItSavesWellOverWhatItCosts) {
  // 64 * 256 / 64 = 256 steps are expected, of 8 blocks less: 2.05 us.
  EXPECT_TRUE(packing_pays(half_gone));
  Thinning dear = half_gone;
  dear.move_s = 1.5e-6;
  EXPECT_FALSE(packing_pays(dear));
}

TEST(PackingPays, NotWhereTheRunEndsSoon) {
  Thinning ends = half_gone;
  ends.left = 100;
  EXPECT_FALSE(packing_pays(ends));
}

TEST(PackingPays, NotWhereBlocksEmptyByThemselves) {
  Thinning sorted = half_gone;
  sorted.blocks = 9;  // 9 / 8 of what is needed
  EXPECT_FALSE(packing_pays(sorted));
}

TEST(PackingPays, WhereThoseThatAreLeftHaveLastedLong) {
  Thinning still = half_gone;
  still.finished = 0;
  still.move_s = 1e-6;  // what 8 blocks less save in 188 steps
  still.window = 128;
  EXPECT_FALSE(packing_pays(still));
  still.window = 256;
  EXPECT_TRUE(packing_pays(still));
}

TEST(ThinningWindow, IsUntilAnEighthShouldHaveFinished) {
  Thinning tile = half_gone;
  tile.finished = 16;  // of 256 in 64 steps: 32 in 128
  EXPECT_EQ(thinning_window(tile), 128);
  tile.finished = 200;
  EXPECT_EQ(thinning_window(tile), first_window);
  tile.finished = 1;
  EXPECT_EQ(thinning_window(tile), longest_thinning_window);
}

TEST(PassSteps, AreAtLeastOne) { EXPECT_EQ(pass_steps({0, 10.0}, 100), 1); }

TEST(AtMost, DoesNotOverflow) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(at_most(0, most, one_pass_sample_steps));
  EXPECT_TRUE(at_most(500'000, 1, one_pass_sample_steps));
  EXPECT_FALSE(at_most(500'001, 1, one_pass_sample_steps));
  EXPECT_FALSE(at_most(most, most, one_pass_sample_steps));
}

}  // namespace
}  // namespace eagle::step
