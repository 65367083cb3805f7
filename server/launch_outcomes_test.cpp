#include "server/launch_outcomes.h"

#include <gtest/gtest.h>

namespace eagle::server {
namespace {

LaunchOutcome report(std::int64_t launches) {
  LaunchReport value;
  value.launches = launches;
  return value;
}

// Keeps what a receiver got.
struct Mailbox {
  std::vector<LaunchOutcome> got;
  LaunchOutcomes::Receiver receiver() {
    return [this](const LaunchOutcome& outcome) { got.push_back(outcome); };
  }
};

class Outcomes : public testing::Test {
protected:
  // Runs launch `id` to its end, as the first of its name.
  void run(std::uint64_t id, bool ran = true) {
    const auto admission = outcomes_.admit({1, 1, id}, box_.receiver());
    ASSERT_TRUE(admission.ok()) << admission.status().to_string();
    ASSERT_EQ(*admission, LaunchOutcomes::Admission::first);
    outcomes_.settle(id, report(static_cast<std::int64_t>(id)), ran);
  }

  Limits limits_;
  LaunchOutcomes outcomes_{limits_};
  Mailbox box_;
};

TEST_F(Outcomes, TheSameIdAgainGetsTheFirstOutcome) {
  run(7);
  Mailbox again;
  const auto admission = outcomes_.admit({1, 1, 7}, again.receiver());
  ASSERT_TRUE(admission.ok());
  EXPECT_EQ(*admission, LaunchOutcomes::Admission::again);
  ASSERT_EQ(again.got.size(), 1u);
  EXPECT_EQ(again.got[0]->launches, 7);
  EXPECT_EQ(box_.got.size(), 1u);
}

TEST_F(Outcomes, AFailureIsAnOutcomeToo) {
  ASSERT_TRUE(outcomes_.admit({1, 1, 1}, box_.receiver()).ok());
  outcomes_.settle(1, Status(Reason::host_call_failed, "raised"), true);
  Mailbox again;
  ASSERT_TRUE(outcomes_.admit({1, 1, 1}, again.receiver()).ok());
  ASSERT_EQ(again.got.size(), 1u);
  EXPECT_EQ(again.got[0].status().reason(), Reason::host_call_failed);
}

TEST_F(Outcomes, ARetryOfARunningLaunchWaitsForIt) {
  ASSERT_TRUE(outcomes_.admit({1, 1, 3}, box_.receiver()).ok());
  Mailbox again;
  const auto admission = outcomes_.admit({1, 1, 3}, again.receiver());
  ASSERT_TRUE(admission.ok());
  EXPECT_EQ(*admission, LaunchOutcomes::Admission::again);
  EXPECT_TRUE(again.got.empty());
  outcomes_.settle(3, report(5), true);
  ASSERT_EQ(again.got.size(), 1u);
  EXPECT_EQ(again.got[0]->launches, 5);
  EXPECT_EQ(box_.got.size(), 1u);
}

TEST_F(Outcomes, WhatNeverStartedMayBeSentAgain) {
  run(4, false);
  run(4, true);
  EXPECT_EQ(box_.got.size(), 2u);
}

TEST_F(Outcomes, AnIdThatStandsForAnotherLaunchIsRefused) {
  run(4);
  EXPECT_EQ(outcomes_.admit({2, 1, 4}, box_.receiver()).status().reason(), Reason::bad_value);
  EXPECT_EQ(outcomes_.admit({1, 2, 4}, box_.receiver()).status().reason(), Reason::bad_value);
}

TEST_F(Outcomes, TheLast1024AreKeptAndOlderOnesNeverRunAgain) {
  for (std::uint64_t id = 1; id <= 1025; ++id) run(id);
  Mailbox again;
  EXPECT_EQ(outcomes_.admit({1, 1, 1}, again.receiver()).status().reason(), Reason::outcome_forgotten);
  EXPECT_TRUE(again.got.empty());
  for (std::uint64_t id = 2; id <= 1025; ++id)
    ASSERT_TRUE(outcomes_.admit({1, 1, id}, again.receiver()).ok());
  EXPECT_EQ(again.got.size(), 1024u);
}

TEST_F(Outcomes, ARunningLaunchOutlivesTheWindow) {
  ASSERT_TRUE(outcomes_.admit({1, 1, 1}, box_.receiver()).ok());
  for (std::uint64_t id = 2; id <= 1100; ++id) run(id);
  outcomes_.settle(1, report(99), true);
  EXPECT_EQ(box_.got.back()->launches, 99);
}

TEST_F(Outcomes, LargeOutcomesAreKeptForLess) {
  LaunchReport large;
  large.iterations.resize(limits_.outcome_bytes / sizeof(std::int64_t) / 2);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    ASSERT_TRUE(outcomes_.admit({1, 1, id}, box_.receiver()).ok());
    outcomes_.settle(id, large, true);
  }
  EXPECT_EQ(outcomes_.admit({1, 1, 1}, box_.receiver()).status().reason(), Reason::outcome_forgotten);
  EXPECT_TRUE(outcomes_.admit({1, 1, 3}, box_.receiver()).ok());
}

}  // namespace
}  // namespace eagle::server
