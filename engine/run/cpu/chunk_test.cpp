#include "engine/run/cpu/chunk.h"

#include <gtest/gtest.h>

#include "engine/run/cpu/share.h"

namespace eagle::run {
namespace {

// Runs a share of so many samples, each of which takes `sample_s`; the longest chunk in seconds.
double longest_chunk(Chunk& chunk, std::int64_t share, double sample_s) {
  double longest = 0;
  for (std::int64_t done = 0; done < share;) {
    const std::int64_t taken = std::min(chunk.size(), share - done);
    longest = std::max(longest, static_cast<double>(taken) * sample_s);
    if (chunk.watch(share)) chunk.took(taken, static_cast<double>(taken) * sample_s);
    done += taken;
  }
  return longest;
}

TEST(Chunk, ComesToTakeAboutTheTimeItShould) {
  for (const double sample_s : {1e-9, 1e-8, 1e-7}) {
    Chunk chunk(share_grain);
    const auto share = static_cast<std::int64_t>(1.0 / sample_s);
    EXPECT_LE(longest_chunk(chunk, share, sample_s), chunk_s * 1.000001) << sample_s;
    EXPECT_GE(static_cast<double>(chunk.size()) * sample_s, chunk_s / 2) << sample_s;
  }
}

TEST(Chunk, BeginsSmallBecauseOneSampleMayBeLong) {
  Chunk chunk(8);
  EXPECT_LE(longest_chunk(chunk, 1000, 1e-3), 0.008 + 1e-9);
  EXPECT_EQ(chunk.size(), 8);
}

TEST(Chunk, IsAWholeNumberOfTheLeast) {
  for (const std::int64_t least : {16, 64}) {
    Chunk chunk(least);
    for (int i = 1; i < 50; ++i) {
      chunk.took(chunk.size(), 1e-6 * i * i);
      EXPECT_GT(chunk.size(), 0);
      EXPECT_EQ(chunk.size() % least, 0);
    }
  }
}

TEST(Chunk, ALaunchThatGotSlowerIsNoticed) {
  Chunk chunk(share_grain);
  longest_chunk(chunk, 4096, 1e-9);
  ASSERT_GE(chunk.size(), 4096);
  for (int launch = 0; launch < 17; ++launch) longest_chunk(chunk, 4096, 1e-4);
  EXPECT_EQ(chunk.size(), chunk.least());
}

}  // namespace
}  // namespace eagle::run
