#include "server/executor.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "server/testing.h"

namespace eagle::server {
namespace {

using server::testing::Mailbox;

// A job that does what the test says.
class Scripted final : public Job {
public:
  explicit Scripted(std::function<Next()> turn) : turn_(std::move(turn)) {}
  Next advance() override { return turn_(); }
  void cancel() override {}

private:
  std::function<Next()> turn_;
};

std::shared_ptr<Job> job(std::function<Job::Next()> turn) {
  return std::make_shared<Scripted>(std::move(turn));
}

TEST(Executor, JobsTakeTurns) {
  Mailbox<std::string> turns;
  Mailbox<int> go;
  Executor executor(8);
  // Holds the thread until both others are queued.
  ASSERT_TRUE(executor
                  .submit(job([&] {
                    go.take();
                    return Job::Next::done;
                  }))
                  .ok());
  const auto three_turns = [&turns](std::string name) {
    return job([&turns, name, left = 3]() mutable {
      turns.put(name);
      return --left == 0 ? Job::Next::done : Job::Next::again;
    });
  };
  ASSERT_TRUE(executor.submit(three_turns("a")).ok());
  ASSERT_TRUE(executor.submit(three_turns("b")).ok());
  go.put(1);
  std::string order;
  for (int i = 0; i < 6; ++i) order += turns.take();
  EXPECT_EQ(order, "ababab");
}

TEST(Executor, AParkedJobHoldsNobodyUp) {
  Mailbox<std::string> events;
  int turn = 0;
  Executor executor(8);
  const auto waiting = job([&] {
    events.put("waiting " + std::to_string(turn));
    return turn++ == 0 ? Job::Next::parked : Job::Next::done;
  });
  ASSERT_TRUE(executor.submit(waiting).ok());
  EXPECT_EQ(events.take(), "waiting 0");
  ASSERT_TRUE(executor
                  .submit(job([&] {
                    events.put("other");
                    return Job::Next::done;
                  }))
                  .ok());
  EXPECT_EQ(events.take(), "other");
  executor.resume(waiting);
  EXPECT_EQ(events.take(), "waiting 1");
}

TEST(Executor, AJobMayBeResumedBeforeItHasParked) {
  Mailbox<int> turns;
  std::shared_ptr<Job> self;
  int turn = 0;
  Executor executor(8);
  self = job([&] {
    turns.put(turn);
    if (turn++ == 1) return Job::Next::done;
    executor.resume(self);
    return Job::Next::parked;
  });
  ASSERT_TRUE(executor.submit(self).ok());
  EXPECT_EQ(turns.take(), 0);
  EXPECT_EQ(turns.take(), 1);
}

TEST(Executor, AnExpeditedJobEndsWhileAnotherHoldsTheThread) {
  Mailbox<int> holding;
  Mailbox<int> go;
  Mailbox<std::thread::id> ended;
  Executor executor(8);
  ASSERT_TRUE(executor
                  .submit(job([&] {
                    holding.put(1);
                    go.take();
                    return Job::Next::done;
                  }))
                  .ok());
  holding.take();
  const auto cancelled = job([&] {
    ended.put(std::this_thread::get_id());
    return Job::Next::done;
  });
  ASSERT_TRUE(executor.submit(cancelled).ok());
  executor.expedite(cancelled);
  ended.take();
  executor.expedite(cancelled);  // it is over: nothing happens
  go.put(1);
  const std::atomic<bool> never = false;
  executor.wait_until_idle(never);
  EXPECT_TRUE(ended.empty());
}

TEST(Executor, AnExpeditedJobThatRunsIsNextWhenItGivesWay) {
  Mailbox<std::string> turns;
  Mailbox<int> go;
  Executor executor(8);
  const auto cancelled = job([&, turn = 0]() mutable {
    turns.put("cancelled");
    go.take();
    return turn++ == 0 ? Job::Next::again : Job::Next::done;
  });
  ASSERT_TRUE(executor.submit(cancelled).ok());
  EXPECT_EQ(turns.take(), "cancelled");
  ASSERT_TRUE(executor
                  .submit(job([&] {
                    turns.put("other");
                    return Job::Next::done;
                  }))
                  .ok());
  executor.expedite(cancelled);
  go.put(1);
  go.put(1);
  EXPECT_EQ(turns.take(), "cancelled");
  EXPECT_EQ(turns.take(), "other");
}

TEST(Executor, AnExpeditedJobIsNeverInTwoTurnsAtOnce) {
  Mailbox<int> turns;
  Mailbox<int> go;
  std::shared_ptr<Job> self;
  std::atomic<int> inside = 0;
  Executor executor(8);
  self = job([&, turn = 0]() mutable {
    EXPECT_EQ(++inside, 1);
    if (turn == 0) {
      executor.resume(self);
      executor.expedite(self);
    }
    turns.put(turn);
    go.take();
    --inside;
    return turn++ == 0 ? Job::Next::parked : Job::Next::done;
  });
  ASSERT_TRUE(executor.submit(self).ok());
  EXPECT_EQ(turns.take(), 0);
  go.put(1);
  EXPECT_EQ(turns.take(), 1);
  go.put(1);
  const std::atomic<bool> never = false;
  executor.wait_until_idle(never);
}

TEST(Executor, WhatJobsLeaveIsDroppedWhileAnotherHoldsTheThread) {
  Mailbox<int> dropped;
  Mailbox<int> go;
  Executor executor(8);
  ASSERT_TRUE(executor
                  .submit(job([&] {
                    executor.discard(std::shared_ptr<void>(nullptr, [&](void*) { dropped.put(1); }));
                    go.take();
                    return Job::Next::done;
                  }))
                  .ok());
  dropped.take();
  go.put(1);
}

TEST(Executor, JobsAreBoundedParkedOnesIncluded) {
  Mailbox<int> parked;
  Executor executor(2);
  const auto park = [&parked] {
    return job([&parked, first = true]() mutable {
      if (!std::exchange(first, false)) return Job::Next::done;
      parked.put(1);
      return Job::Next::parked;
    });
  };
  const std::vector<std::shared_ptr<Job>> jobs = {park(), park()};
  for (const auto& each : jobs) ASSERT_TRUE(executor.submit(each).ok());
  parked.take();
  parked.take();
  EXPECT_EQ(executor.submit(park()).reason(), Reason::quota);
  executor.resume(jobs[0]);
  executor.resume(jobs[1]);
  const std::atomic<bool> never = false;
  executor.wait_until_idle(never);
  EXPECT_EQ(executor.admitted(), 0u);
}

TEST(Executor, WaitingForIdlenessCanBeCutShort) {
  Mailbox<int> parked;
  Executor executor(2);
  const auto stuck = job([&] {
    parked.put(1);
    return Job::Next::parked;
  });
  ASSERT_TRUE(executor.submit(stuck).ok());
  parked.take();
  std::atomic<bool> hurry = false;
  std::jthread waiting([&] { executor.wait_until_idle(hurry); });
  hurry = true;
  executor.wake();
  waiting.join();
  EXPECT_EQ(executor.admitted(), 1u);
}

}  // namespace
}  // namespace eagle::server
