#include "server/launch_outcomes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

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
  Ledger ledger_ = *Ledger::create();
  Ledger::Begun begun_ = ledger_.begun(1);
  LaunchOutcomes outcomes_{limits_, begun_};
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

// A thread of the client takes an id and is held up, while others launch on.
TEST_F(Outcomes, AnIdThatComesLateRunsHoweverManyCameBefore) {
  for (std::uint64_t id = 2; id <= 5'000; ++id) {
    if (id != 9 && id != 10) run(id);
  }
  for (const std::uint64_t late : {10, 1, 9}) {
    run(late);
    EXPECT_EQ(box_.got.back()->launches, static_cast<std::int64_t>(late));
  }
  EXPECT_EQ(outcomes_.admit({1, 1, 8}, box_.receiver()).status().reason(), Reason::outcome_forgotten);
  EXPECT_EQ(outcomes_.admit({1, 1, 11}, box_.receiver()).status().reason(), Reason::outcome_forgotten);
}

TEST_F(Outcomes, WhatWasRefusedLongAgoMayStillBeSentAgain) {
  for (std::uint64_t id = 1; id <= 3'000; ++id) run(id, id % 100 != 0);
  for (std::uint64_t id = 100; id <= 3'000; id += 100) run(id);
}

TEST_F(Outcomes, IdsWithGapsWithoutEndAreForgottenFromTheLowestOn) {
  const std::uint64_t ids = 3 * limits_.outcomes;
  for (std::uint64_t id = 1; id <= ids; ++id) run(2 * id);
  EXPECT_EQ(outcomes_.admit({1, 1, 1}, box_.receiver()).status().reason(), Reason::outcome_forgotten);
  run(2 * ids - 1);
}

// What may run is exactly what never did.
TEST_F(Outcomes, IdsInAnyOrderRunOnceEach) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<std::uint64_t> ids(500);
  std::iota(ids.begin(), ids.end(), 1);
  std::shuffle(ids.begin(), ids.end(), random);
  limits_.outcomes = 300;  // outcomes, and gaps, of which 500 ids make 250
  std::set<std::uint64_t> known;
  for (const std::uint64_t id : ids) {
    run(id);
    known.insert(id);
    const std::uint64_t asked = std::uniform_int_distribution<std::uint64_t>(1, 500)(random);
    const auto again = outcomes_.admit({1, 1, asked}, box_.receiver());
    if (known.contains(asked)) {
      EXPECT_FALSE(again.ok() && *again == LaunchOutcomes::Admission::first) << asked;
    } else {
      ASSERT_TRUE(again.ok() && *again == LaunchOutcomes::Admission::first) << asked;
      outcomes_.settle(asked, Status(Reason::busy, "not now"), false);
    }
  }
}

TEST_F(Outcomes, WhatIsAskedForLaterIsKeptUntilItWasAskedFor) {
  ASSERT_TRUE(outcomes_.admit({1, 1, 1}, box_.receiver(), {false, true}).ok());
  outcomes_.settle(1, report(99), true);
  for (std::uint64_t id = 2; id <= 3'000; ++id) run(id);
  Mailbox later;
  ASSERT_TRUE(outcomes_.admit({1, 1, 1}, later.receiver()).ok());
  ASSERT_EQ(later.got.size(), 1u);
  EXPECT_EQ(later.got[0]->launches, 99);
  for (std::uint64_t id = 3'001; id <= 5'000; ++id) run(id);
  EXPECT_EQ(outcomes_.admit({1, 1, 1}, later.receiver()).status().reason(), Reason::outcome_forgotten);
}

TEST_F(Outcomes, WhatNobodyAsksForIsBoundedToo) {
  for (std::uint64_t id = 1; id <= limits_.outcomes + 1; ++id) {
    ASSERT_TRUE(outcomes_.admit({1, 1, id}, box_.receiver(), {false, true}).ok());
    outcomes_.settle(id, report(1), true);
  }
  Mailbox later;
  EXPECT_EQ(outcomes_.admit({1, 1, 1}, later.receiver()).status().reason(), Reason::outcome_forgotten);
  EXPECT_TRUE(outcomes_.admit({1, 1, 2}, later.receiver()).ok());
}

TEST_F(Outcomes, WhoAsksLaterDoesNotWaitNow) {
  ASSERT_TRUE(outcomes_.admit({1, 1, 1}, box_.receiver()).ok());
  Mailbox now;
  for (int i = 0; i < 1'000; ++i) {
    const auto again = outcomes_.admit({1, 1, 1}, now.receiver(), {false, true});
    ASSERT_TRUE(again.ok());
    ASSERT_EQ(*again, LaunchOutcomes::Admission::again);
  }
  outcomes_.settle(1, report(1), true);
  EXPECT_TRUE(now.got.empty());
  EXPECT_EQ(box_.got.size(), 1u);
}

TEST_F(Outcomes, SoManyWaitForOneLaunchAndNoMore) {
  limits_.launch_waiters = 3;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(outcomes_.admit({1, 1, 1}, box_.receiver()).ok());
  const Status refused = outcomes_.admit({1, 1, 1}, box_.receiver()).status();
  EXPECT_EQ(refused.reason(), Reason::quota);
  EXPECT_NE(refused.message().find("launch_waiters"), std::string::npos);
  outcomes_.settle(1, report(1), true);
  EXPECT_EQ(box_.got.size(), 3u);
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

// ---- launches that another worker was given

TEST_F(Outcomes, WhatCertainlyHasNotBegunRunsWhenItIsSentAgain) {
  begun_.note(5);
  begun_.note(7);
  outcomes_.lost_through(7);
  EXPECT_EQ(outcomes_.admit({1, 1, 5}, box_.receiver()).status().reason(), Reason::worker_restarted);
  EXPECT_EQ(outcomes_.check_lost(7).reason(), Reason::worker_restarted);
  EXPECT_TRUE(outcomes_.check_lost(6).ok());
  run(6);
  EXPECT_EQ(outcomes_.admit({1, 1, 4}, box_.receiver(), {true, false}).status().reason(),
            Reason::worker_restarted)
      << "what was enqueued after it may have run";
}

TEST_F(Outcomes, WhatIsStillToBeAskedForGoesToTheNextWorker) {
  for (const std::uint64_t id : {3u, 4u, 5u}) {
    ASSERT_TRUE(outcomes_.admit({1, 7, id}, box_.receiver(), {false, true}).ok());
  }
  outcomes_.settle(3, report(7), true);
  outcomes_.settle(4, Status(Reason::deadline, "too late"), true);
  LaunchOutcomes next(limits_, begun_);
  ASSERT_TRUE(next.restore(outcomes_.left_over()).ok());
  next.lost_through(5);
  Mailbox later;
  ASSERT_TRUE(next.admit({1, 7, 3}, later.receiver(), {true, false}).ok());
  ASSERT_TRUE(next.admit({1, 7, 4}, later.receiver(), {true, false}).ok());
  ASSERT_EQ(later.got.size(), 2u);
  EXPECT_EQ(later.got[0]->launches, 7);
  EXPECT_EQ(later.got[1].status().message(), "too late");
  EXPECT_EQ(next.admit({1, 7, 5}, later.receiver(), {true, false}).status().reason(),
            Reason::worker_restarted)
      << "it had not ended";
  EXPECT_EQ(next.left_over(), "") << "they have been asked for";
  EXPECT_EQ(next.restore("\xff\xff").reason(), Reason::bad_message);
}

}  // namespace
}  // namespace eagle::server
