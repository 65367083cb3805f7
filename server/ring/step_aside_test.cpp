#include "server/ring/step_aside.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace eagle::server {
namespace {

cpu_set_t affinity() {
  cpu_set_t allowed;
  EXPECT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  return allowed;
}

// The system may move the thread between two lines of a test, too; not each time.
constexpr int attempts = 100;

const std::function<void(bool)> nobody = [](bool) {};

class StepAsideTest : public ::testing::Test {
protected:
  void SetUp() override {
    if (CPU_COUNT(&before_) < 2) GTEST_SKIP() << "there is one processor";
  }
  void TearDown() override { static_cast<void>(::sched_setaffinity(0, sizeof before_, &before_)); }

  const cpu_set_t before_ = affinity();
};

TEST_F(StepAsideTest, TheThreadLeavesTheProcessorOfTheClientAndMayRunThereAgain) {
  bool left = false;
  for (int i = 0; i < attempts && !left; ++i) {
    const int shared = ::sched_getcpu();
    left = StepAside().from(shared, 1, nobody) && ::sched_getcpu() != shared;
  }
  EXPECT_TRUE(left);
  const cpu_set_t after = affinity();
  EXPECT_TRUE(CPU_EQUAL(&before_, &after));
}

TEST_F(StepAsideTest, AClientElsewhereMovesNobody) {
  cpu_set_t here;
  CPU_ZERO(&here);
  const int processor = ::sched_getcpu();
  CPU_SET(static_cast<unsigned>(processor), &here);
  ASSERT_EQ(::sched_setaffinity(0, sizeof here, &here), 0);  // so that "elsewhere" stays true
  for (const int other : {processor + 1, -1, -2, CPU_SETSIZE, 1 << 30}) {
    EXPECT_FALSE(StepAside().from(other, 1, nobody)) << other;
  }
}

TEST_F(StepAsideTest, AThreadThatMayRunNowhereElseStays) {
  cpu_set_t here;
  CPU_ZERO(&here);
  const int processor = ::sched_getcpu();
  CPU_SET(static_cast<unsigned>(processor), &here);
  ASSERT_EQ(::sched_setaffinity(0, sizeof here, &here), 0);
  EXPECT_FALSE(StepAside().from(processor, 1, nobody));
  const cpu_set_t after = affinity();
  EXPECT_TRUE(CPU_EQUAL(&here, &after));
}

TEST_F(StepAsideTest, ItStaysWhereClientsAreAsManyAsProcessors) {
  for (int i = 0; i < attempts; ++i) {
    EXPECT_FALSE(StepAside().from(::sched_getcpu(), CPU_COUNT(&before_), nobody));
  }
}

TEST_F(StepAsideTest, ItMovesNoMoreThanOnceInAWhile) {
  StepAside aside;
  int moves = 0;
  for (int i = 0; i < attempts; ++i) moves += aside.from(::sched_getcpu(), 1, nobody) ? 1 : 0;
  EXPECT_LT(moves, attempts);  // a hundred looks take less than a hundred pauses of two milliseconds
  EXPECT_GT(moves, 0);
}

}  // namespace
}  // namespace eagle::server
