#include "engine/run/cpu/share.h"

#include <gtest/gtest.h>

namespace eagle::run {
namespace {

TEST(Share, EverySampleBelongsToExactlyOneThread) {
  for (const std::int64_t samples : {0, 1, 63, 64, 65, 128, 1000, 4097, 100'003}) {
    for (const int team : {1, 2, 3, 7, 64}) {
      SCOPED_TRACE(testing::Message() << samples << " samples, team " << team);
      std::int64_t next = 0;
      for (int thread = 0; thread < team; ++thread) {
        const Range share = share_of(samples, thread, team);
        EXPECT_EQ(share.begin, next);
        EXPECT_LE(share.begin, share.end);
        next = share.end;
      }
      EXPECT_EQ(next, samples);
    }
  }
}

TEST(Share, CutsAreMultiplesOfTheGrain) {
  for (int thread = 0; thread < 6; ++thread) {
    EXPECT_EQ(share_of(10'001, thread, 7).end % share_grain, 0) << thread;
  }
}

TEST(Share, SharesDifferByOneGrainAtMost) {
  constexpr std::int64_t samples = 64 * 23;  // 23 grains over 7 threads: 4,4,3,3,3,3,3
  EXPECT_EQ(share_of(samples, 0, 7), (Range{0, 4 * 64}));
  EXPECT_EQ(share_of(samples, 1, 7), (Range{4 * 64, 8 * 64}));
  EXPECT_EQ(share_of(samples, 2, 7), (Range{8 * 64, 11 * 64}));
  EXPECT_EQ(share_of(samples, 6, 7), (Range{20 * 64, 23 * 64}));
}

TEST(Share, ThreadsBeyondTheGrainsGetNothing) {
  EXPECT_EQ(share_of(65, 0, 4), (Range{0, 64}));
  EXPECT_EQ(share_of(65, 1, 4), (Range{64, 65}));
  EXPECT_TRUE(share_of(65, 2, 4).empty());
  EXPECT_TRUE(share_of(0, 0, 1).empty());
}

}  // namespace
}  // namespace eagle::run
