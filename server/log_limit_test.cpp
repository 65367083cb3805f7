#include "server/log_limit.h"

#include <gtest/gtest.h>

namespace eagle::server {
namespace {

TEST(LogLimit, LeavesOutWhatIsOverAndTellsHowMuch) {
  LogLimit limit;
  const auto start = LogLimit::Clock::time_point() + std::chrono::hours(1);
  for (std::uint32_t i = 0; i < LogLimit::lines; ++i) EXPECT_EQ(limit.admit(start), "");
  for (int i = 0; i < 7; ++i) EXPECT_EQ(limit.admit(start), std::nullopt);
  EXPECT_EQ(limit.admit(start + LogLimit::window), " (7 lines like it were left out)");
  EXPECT_EQ(limit.admit(start + LogLimit::window), "");
}

}  // namespace
}  // namespace eagle::server
