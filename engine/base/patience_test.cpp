// Waiting without sleeping, as far as it pays.
#include "engine/base/patience.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace eagle {
namespace {

TEST(Patience, WhatIsDoneIsNotWaitedFor) {
  Patience patience(0, 0);
  int looks = 0;
  EXPECT_TRUE(patience.wait([&] { return ++looks > 0; }));
  EXPECT_EQ(looks, 1);
}

TEST(Patience, WithoutAnyItLooksOnce) {
  Patience patience(0, 0);
  for (int i = 0; i < 200; ++i) {
    int looks = 0;
    EXPECT_FALSE(patience.wait([&] { return ++looks > 1; }));
    EXPECT_EQ(looks, 1);
  }
}

TEST(Patience, WhatAnotherThreadDoesIsSeen) {
  Patience patience(60, 60);
  std::atomic<bool> done = false;
  const std::jthread other([&] { done = true; });
  EXPECT_TRUE(patience.wait([&] { return done.load(); }));
}

TEST(Patience, WhatIsNeverDoneIsGivenUpEachTime) {
  Patience patience(1e-6, 1e-4);
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(patience.wait([] { return false; }));
}

TEST(Patience, AfterManyWaitsInVainThereIsSomeLeft) {
  Patience patience(1e-3, 1e-2);
  for (int i = 0; i < 10; ++i) static_cast<void>(patience.wait([] { return false; }));
  int looks = 0;
  EXPECT_TRUE(patience.wait([&] { return ++looks == 10; }));
}

}  // namespace
}  // namespace eagle
