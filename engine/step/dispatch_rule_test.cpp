#include "engine/step/dispatch_rule.h"

#include <gtest/gtest.h>

namespace eagle::step {
namespace {

TEST(SplitRule, BeginsFusedAndSplitsAtFifteenPercent) {
  SplitRule rule;
  EXPECT_FALSE(rule.split());
  rule.look(1.149);
  EXPECT_FALSE(rule.split());
  rule.look(1.15);
  EXPECT_TRUE(rule.split());
}

TEST(SplitRule, FusesAgainUnderFivePercent) {
  SplitRule rule;
  rule.look(2.0);
  rule.look(1.05);
  EXPECT_TRUE(rule.split());
  rule.look(1.049);
  EXPECT_FALSE(rule.split());
}

TEST(SplitRule, StaysAsItIsInBetween) {
  SplitRule fused, split;
  split.look(1.2);
  for (const double gain : {1.06, 1.14, 1.05}) {
    fused.look(gain);
    split.look(gain);
    EXPECT_FALSE(fused.split());
    EXPECT_TRUE(split.split());
  }
}

TEST(SplitRule, LooksEverySixteenSteps) { EXPECT_EQ(look_steps, 16); }

// Four lanes a block.
TEST(CountBlocks, CountsABranchOnceABlockThatTakesIt) {
  const std::vector<std::int64_t> selectors = {0, 0, 1, 0, 0, 0, 0, 0, 2, takes_none};
  const BlockCounts counts = count_blocks(selectors, 4, 3);
  EXPECT_EQ(counts.blocks, 3);
  EXPECT_EQ(counts.branches, (std::vector<std::int64_t>{2, 1, 1}));
}

TEST(CountBlocks, ABlockWithoutLiveSamplesIsNone) {
  const std::vector<std::int64_t> selectors = {not_there, not_there, not_there, not_there, 1, not_there};
  const BlockCounts counts = count_blocks(selectors, 4, 2);
  EXPECT_EQ(counts.blocks, 1);
  EXPECT_EQ(counts.branches, (std::vector<std::int64_t>{0, 1}));
}

TEST(CountOrdered, PutsEachBranchInAsFewBlocksAsItFits) {
  // 2 that take none, then 3, 6 and 1: [-- 00][0 111][111 2]
  const std::vector<std::int64_t> samples = {3, 6, 1};
  const BlockCounts counts = count_ordered(samples, 2, 4);
  EXPECT_EQ(counts.blocks, 3);
  EXPECT_EQ(counts.branches, (std::vector<std::int64_t>{2, 2, 1}));
}

TEST(CountOrdered, IsWhatCountingTheOrderedSelectorsGives) {
  const std::vector<std::int64_t> selectors = {-1, 0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2};
  const std::vector<std::int64_t> samples = {5, 2, 6};
  const BlockCounts counted = count_blocks(selectors, 4, 3);
  const BlockCounts predicted = count_ordered(samples, 1, 4);
  EXPECT_EQ(counted.blocks, predicted.blocks);
  EXPECT_EQ(counted.branches, predicted.branches);
}

TEST(Predict, WeighsBranchesWhatIsCommonAndTheOrdering) {
  const BranchCosts costs{1.0, {2.0, 3.0}, 0.5};
  // Two blocks that take both branches; ordered, each takes one.
  const Prediction prediction = predict(costs, {2, {2, 2}}, {2, {1, 1}}, 8);
  EXPECT_EQ(prediction.fused_s, 16 * (2 * 1.0 + 2 * 2.0 + 2 * 3.0));
  EXPECT_EQ(prediction.split_s, 16 * (2 * 1.0 + 2.0 + 3.0) + 8 * 0.5);
  EXPECT_GT(prediction.gain(), split_gain);
}

TEST(Predict, ThereIsNoGainWhereNothingRuns) { EXPECT_EQ(Prediction{}.gain(), 1.0); }

}  // namespace
}  // namespace eagle::step
