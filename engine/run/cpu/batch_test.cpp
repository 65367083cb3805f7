#include "engine/run/cpu/batch.h"

#include <gtest/gtest.h>

namespace eagle::run {
namespace {

// Runs a launch of so many samples a thread, each of which takes `sample_s`; the longest batch in seconds.
double longest_batch(Batches& batches, std::int64_t share, double sample_s) {
  double longest = 0;
  for (std::int64_t done = 0; done < share;) {
    const std::int64_t taken = std::min(batches.next(), share - done);
    longest = std::max(longest, static_cast<double>(taken) * sample_s);
    if (batches.watch(share)) batches.took(taken, static_cast<double>(taken) * sample_s);
    done += taken;
  }
  return longest;
}

TEST(Batches, ComeToTakeAboutTheTimeTheyShould) {
  for (const double sample_s : {1e-9, 1e-7, 1e-5}) {
    Batches batches;
    const auto share = static_cast<std::int64_t>(1.0 / sample_s);
    EXPECT_LE(longest_batch(batches, share, sample_s), batch_s) << sample_s;
    EXPECT_GE(static_cast<double>(batches.next()) * sample_s, batch_s / 2) << sample_s;
  }
}

TEST(Batches, BeginSmallBecauseOneSampleMayBeLong) {
  Batches batches;
  EXPECT_LE(longest_batch(batches, 1000, 1e-3), 0.064 + 1e-9);
  EXPECT_EQ(batches.next(), 64) << "whole cache lines, at least";
}

TEST(Batches, AreWholeCacheLines) {
  Batches batches;
  for (int i = 1; i < 50; ++i) {
    batches.took(batches.next(), 1e-5 * i * i);
    EXPECT_GT(batches.next(), 0);
    EXPECT_EQ(batches.next() % 64, 0);
  }
}

TEST(Batches, ALaunchThatGotSlowerIsNoticed) {
  Batches batches;
  longest_batch(batches, 4096, 1e-9);
  ASSERT_GE(batches.next(), 4096);
  for (int launch = 0; launch < 17; ++launch) longest_batch(batches, 4096, 1e-4);
  EXPECT_LT(batches.next(), 64 + 1);
}

}  // namespace
}  // namespace eagle::run
