#include "server/keeper/crash_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace eagle::server {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Death = CrashLoop::Death;

class CrashLoopTest : public ::testing::Test {
protected:
  std::string died(Death death, seconds later) { return loop_.died(death, now_ += later); }

  CrashLoop::Time now_;
  CrashLoop loop_{seconds(60)};
};

TEST_F(CrashLoopTest, GoesOnWhereDeathsAreFarApart) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(died(Death::while_serving, seconds(20)), "") << i;
    loop_.served();
  }
}

TEST_F(CrashLoopTest, EndsAtFiveDeathsWithinTheWindow) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(died(Death::while_serving, seconds(10)), "");
    loop_.served();
  }
  EXPECT_THAT(died(Death::while_serving, seconds(10)), HasSubstr("5 times within 60 s"));
}

// Each of them took long, so that no window ever has five.
TEST_F(CrashLoopTest, EndsAtFiveStartsThatCameToNothing) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(died(Death::before_serving, minutes(5)), "");
  EXPECT_THAT(died(Death::before_serving, minutes(5)),
              HasSubstr("5 workers in a row ended before they served"));
}

TEST_F(CrashLoopTest, BeginsToCountAnewWithAWorkerThatServes) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(died(Death::before_serving, minutes(5)), "") << i;
    if (i % 4 == 3) loop_.served();
  }
}

TEST_F(CrashLoopTest, CountsDeathsOfGraphsApart) {
  for (int i = 0; i < 30; ++i) EXPECT_EQ(died(Death::of_a_graph, seconds(1)), "") << i;
  EXPECT_EQ(died(Death::while_serving, seconds(1)), "");
  EXPECT_THAT(died(Death::of_a_graph, seconds(1)), HasSubstr("more than 30 deaths"));
}

}  // namespace
}  // namespace eagle::server
