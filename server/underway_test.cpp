#include "server/underway.h"

#include <gtest/gtest.h>

#include <thread>

namespace eagle::server {
namespace {

TEST(Underway, CountsUntilTheLastCopyOfATokenIsGone) {
  Underway underway;
  auto token = underway.enter();
  auto copy = token;
  token.reset();
  EXPECT_EQ(underway.count(), 1u);
  copy.reset();
  EXPECT_EQ(underway.count(), 0u);
}

// The watchdog ends the tests where one waits on.
TEST(Underway, WhoWaitsGoesOnWhenNothingIsLeft) {
  Underway underway;
  const std::atomic<bool> never = false;
  underway.wait_until_none(never);
  auto token = underway.enter();
  std::jthread other([&] { token.reset(); });
  underway.wait_until_none(never);
  EXPECT_EQ(underway.count(), 0u);
}

TEST(Underway, WhoWaitsCanBeHurried) {
  Underway underway;
  const auto token = underway.enter();
  std::atomic<bool> stop = false;
  std::jthread other([&] {
    stop = true;
    underway.wake();
  });
  underway.wait_until_none(stop);
  EXPECT_EQ(underway.count(), 1u);
}

}  // namespace
}  // namespace eagle::server
