#include "server/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/clock.h"
#include "server/executor_testing.h"
#include "server/testing.h"

namespace eagle::server {
namespace {

using server::testing::Endless;
using server::testing::job;
using server::testing::Mailbox;

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

// One that still has something to compute, for which there is one team.
class Computing final : public Job {
public:
  explicit Computing(std::function<Next()> turn) : turn_(std::move(turn)) {}
  Next advance() override { return turn_(); }
  [[nodiscard]] bool ends_at_once() const override { return false; }
  void cancel() override {}

private:
  std::function<Next()> turn_;
};

TEST(Executor, AnExpeditedJobThatComputesDoesSoOnTheExecutorsThreadNext) {
  Mailbox<std::string> turns;
  Mailbox<std::thread::id> threads;
  Executor executor(8);
  const auto blocker = server::testing::Blocker::hold(executor);
  const auto queued = [&](const std::string& name) {
    return job([&turns, &threads, name] {
      threads.put(std::this_thread::get_id());
      turns.put(name);
      return Job::Next::done;
    });
  };
  const auto computing = std::make_shared<Computing>([&, left = 2]() mutable {
    threads.put(std::this_thread::get_id());
    turns.put("computing");
    return --left == 0 ? Job::Next::done : Job::Next::again;
  });
  ASSERT_TRUE(executor.submit(queued("other")).ok());
  ASSERT_TRUE(executor.submit(computing).ok());
  executor.expedite(computing);
  executor.expedite(computing);
  blocker->release();
  EXPECT_EQ(turns.take(), "computing");
  EXPECT_EQ(turns.take(), "computing") << "it stays next until it has ended";
  EXPECT_EQ(turns.take(), "other");
  const std::thread::id first = threads.take();
  EXPECT_EQ(threads.take(), first);
  EXPECT_EQ(threads.take(), first);
}

// Of the queue nobody may be told that a job in it waits for its client.
TEST(Executor, AJobThatWasResumedBeforeItParksIsQueued) {
  Mailbox<std::string> turns;
  Executor executor(8);
  std::shared_ptr<Job> self;
  self = job([&, left = 2]() mutable {
    turns.put("self");
    if (--left == 0) return Job::Next::done;
    EXPECT_TRUE(executor
                    .submit(job([&] {
                      turns.put("other");
                      return Job::Next::done;
                    }))
                    .ok());
    executor.resume(self);
    executor.park(*self);
    executor.expedite(self);
    return Job::Next::parked;
  });
  ASSERT_TRUE(executor.submit(self).ok());
  EXPECT_EQ(turns.take(), "self");
  EXPECT_EQ(turns.take(), "self") << "it was expedited";
  EXPECT_EQ(turns.take(), "other");
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

// A job that has something to bring to an end, once it is cancelled, in one more turn.
TEST(Executor, ACancelledJobThatEndsWithWorkIsNextOnTheExecutorsThread) {
  class Ends final : public Job {
  public:
    explicit Ends(Mailbox<std::pair<std::string, std::thread::id>>& turns) : turns_(turns) {}
    Next advance() override {
      turns_.put({cancelled_ ? "end" : "piece", std::this_thread::get_id()});
      return cancelled_ ? Next::done : Next::again;
    }
    void cancel() override { cancelled_ = true; }
    [[nodiscard]] bool ends_at_once() const override { return false; }

  private:
    Mailbox<std::pair<std::string, std::thread::id>>& turns_;
    std::atomic<bool> cancelled_ = false;
  };
  Mailbox<std::pair<std::string, std::thread::id>> turns;
  Executor executor(8);
  const auto blocker = server::testing::Blocker::hold(executor);
  ASSERT_TRUE(executor
                  .submit(job([&] {
                    turns.put({"other", std::this_thread::get_id()});
                    return Job::Next::done;
                  }))
                  .ok());
  const auto ends = std::make_shared<Ends>(turns);
  ASSERT_TRUE(executor.submit(ends).ok());
  ends->cancel();
  executor.expedite(ends);
  executor.expedite(ends);  // a cancel may come twice
  blocker->release();
  const auto first = turns.take();
  const auto second = turns.take();
  EXPECT_EQ(first.first, "end") << "ahead of the one that was there before";
  EXPECT_EQ(second.first, "other");
  EXPECT_EQ(first.second, second.second) << "on the thread that has the team";
}

// ---- tenants

// Runs in pieces, each of which keeps the thread for about that long, until it is told to stop.
struct Busy {
  std::chrono::microseconds piece;
  std::chrono::steady_clock::time_point& ended;  // the piece before, whosesoever
  std::atomic<bool> stop = false;
  std::atomic<double> spent = 0;
  std::atomic<double> longest = 0;

  std::shared_ptr<Job> job() {
    return server::job([this] {
      const auto began = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - began < piece) {
      }
      spent = spent + seconds_since(began);
      // The thread may lose its processor beside a piece, too, and the executor counts that to one of the
      // two.
      longest = std::max(longest.load(), seconds_since(ended));
      ended = std::chrono::steady_clock::now();
      return stop ? Job::Next::done : Job::Next::again;
    });
  }
};

// Start-time fair queueing promises that two that always have work differ, by weight, by a piece of each.
TEST(Executor, ThreadTimeGoesByTheWeightsOfTenants) {
  auto ended = std::chrono::steady_clock::now();
  Busy light{std::chrono::microseconds(900), ended};
  Busy heavy{std::chrono::microseconds(100), ended};
  TenantPolicy three;
  three.weight = 3;
  const auto light_tenant = std::make_shared<Tenant>("light", TenantPolicy());
  const auto heavy_tenant = std::make_shared<Tenant>("heavy", three);
  Executor executor(8);
  ASSERT_TRUE(executor.submit(light.job(), {light_tenant, {}, nullptr}).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(executor.submit(heavy.job(), {heavy_tenant, {}, nullptr}).ok());
  while (light.spent + heavy.spent < 0.3) std::this_thread::yield();
  light.stop = heavy.stop = true;
  const std::atomic<bool> never = false;
  executor.wait_until_idle(never);
  const TenantReport of_light = light_tenant->report();
  const TenantReport of_heavy = heavy_tenant->report();
  // The last pieces of all jobs come after the end; and what the executor measured as a piece is at most two
  // of the gaps between the ends of pieces.
  const double slack = 4 * (light.longest + heavy.longest);
  EXPECT_LE(std::abs(of_heavy.device_s / 3 - of_light.device_s), slack)
      << of_heavy.device_s << " s and " << of_light.device_s << " s";
  EXPECT_EQ(of_heavy.jobs_ended, 3u);
  EXPECT_EQ(of_heavy.held[static_cast<std::size_t>(Held::jobs)], 0u);
}

// Admitted before it was over its part, and endless: it has what nobody else wants.
TEST(Executor, ATenantOverItsPartOfTheTeamGoesBehindAllOthers) {
  TenantPolicy policy;
  policy.device_share = 0.01;
  policy.priority = 1;
  const auto greedy = std::make_shared<Tenant>("greedy", policy);
  const auto other = std::make_shared<Tenant>("other", TenantPolicy());
  Mailbox<char> turns;
  Mailbox<int> go;
  std::atomic<bool> stop = false;
  Executor executor(8);
  ASSERT_TRUE(executor
                  .submit(job([&] {
                            turns.put('g');
                            go.take();
                            return stop ? Job::Next::done : Job::Next::again;
                          }),
                          {greedy, {}, nullptr})
                  .ok());
  ASSERT_EQ(turns.take(), 'g');
  ASSERT_TRUE(executor
                  .submit(job([&, left = 5]() mutable {
                            turns.put('o');
                            return --left == 0 ? Job::Next::done : Job::Next::again;
                          }),
                          {other, {}, nullptr})
                  .ok());
  greedy->note_computed(3600);  // by now
  go.put(1);
  std::string order;
  while (order.size() < 6) order += turns.take();
  EXPECT_EQ(order, "ooooog");
  stop = true;
  go.put(1);
  const std::atomic<bool> never = false;
  executor.wait_until_idle(never);
}

TEST(Executor, AJobOverItsTenantsQuotaIsRefusedAndAnothersIsNot) {
  TenantPolicy policy;
  policy.quotas[static_cast<std::size_t>(Held::jobs)] = 1;
  const auto bounded = std::make_shared<Tenant>("bounded", policy);
  const auto other = std::make_shared<Tenant>("other", TenantPolicy());
  Executor executor(8);
  const auto blocker = server::testing::Blocker::hold(executor);
  const auto once = [] { return job([] { return Job::Next::done; }); };
  ASSERT_TRUE(executor.submit(once(), {bounded, {}, nullptr}).ok());
  const Status refused = executor.submit(once(), {bounded, {}, nullptr});
  EXPECT_EQ(refused.reason(), Reason::quota);
  EXPECT_NE(refused.message().find("tenant_jobs"), std::string::npos) << refused.message();
  EXPECT_TRUE(executor.submit(once(), {other, {}, nullptr}).ok());
  blocker->release();
  const std::atomic<bool> never = false;
  executor.wait_until_idle(never);
  EXPECT_TRUE(executor.submit(once(), {bounded, {}, nullptr}).ok());
}

TEST(Executor, WhatGivesWayToNobodyIsStoppedOnceAnothersWorkWaits) {
  const auto one = std::make_shared<Tenant>("one", TenantPolicy());
  const auto other = std::make_shared<Tenant>("other", TenantPolicy());
  Executor executor(8);
  const auto endless = std::make_shared<Endless>();
  ASSERT_TRUE(executor.submit(endless, {one, {}, nullptr}).ok());
  endless->wait_until_it_runs();
  constexpr std::chrono::milliseconds none(0);
  EXPECT_EQ(executor.stop_overlong(none), "") << "nobody waits";
  const auto once = [] { return job([] { return Job::Next::done; }); };
  ASSERT_TRUE(executor.submit(once(), {one, {}, nullptr}).ok());
  EXPECT_EQ(executor.stop_overlong(none), "") << "nobody else waits";
  ASSERT_TRUE(executor.submit(once(), {other, {}, nullptr}).ok());
  EXPECT_EQ(executor.stop_overlong(std::chrono::hours(1)), "") << "it has not been long";
  EXPECT_NE(executor.stop_overlong(none), "");
  const std::atomic<bool> never = false;
  executor.wait_until_idle(never);
  EXPECT_EQ(endless->why().reason(), Reason::quota);
  EXPECT_NE(endless->why().message().find("piece_ms"), std::string::npos);
}

// ---- jobs over the same bytes

class Conflicts : public ::testing::Test {
protected:
  static std::shared_ptr<const Footprint> bytes(std::int64_t first, std::int64_t last, bool written) {
    const graph::NamedView view{"x", {0, first, plane::DType::boolean, 1, {last - first}, {1}}};
    graph::Touches touches;
    (written ? touches.writes : touches.reads).push_back(view);
    const PlaneBytes* const plane = reinterpret_cast<const PlaneBytes*>(std::uintptr_t{64});  // a name
    return Footprint::of({&touches, 1}, {&plane, 1});
  }
  static std::shared_ptr<const Footprint> writes(std::int64_t first, std::int64_t last) {
    return bytes(first, last, true);
  }
  void submit(const std::shared_ptr<Job>& job, std::shared_ptr<const Footprint> footprint,
              std::uint64_t session = 1, const std::shared_ptr<Tenant>& tenant = nullptr) {
    ASSERT_TRUE(
        executor_.submit(job, {tenant ? tenant : tenant_, {session, 0, 0, {}}, std::move(footprint)}).ok());
  }
  // Runs in two pieces and notes them.
  std::shared_ptr<Job> in_two(const std::string& name) {
    return job([this, name, left = 2]() mutable {
      turns_.put(name);
      return --left == 0 ? Job::Next::done : Job::Next::again;
    });
  }
  // Parks once, after its first piece.
  std::shared_ptr<Job> calling(const std::string& name) {
    return job([this, name, left = 2]() mutable {
      turns_.put(name);
      return --left == 0 ? Job::Next::done : Job::Next::parked;
    });
  }
  std::string take(int turns) {
    std::string order;
    for (int i = 0; i < turns; ++i) order += turns_.take();
    return order;
  }
  // The park of a job that has put its name is not quite done: wait for the executor's thread to be past it.
  void settle() {
    Mailbox<int> passed;
    ASSERT_TRUE(executor_
                    .submit(job([&] {
                      passed.put(1);
                      return Job::Next::done;
                    }))
                    .ok());
    passed.take();
  }

  Mailbox<std::string> turns_;
  std::shared_ptr<Tenant> tenant_ = std::make_shared<Tenant>("t", TenantPolicy());
  std::shared_ptr<Tenant> other_ = std::make_shared<Tenant>("u", TenantPolicy());
  Executor executor_{64};
};

TEST_F(Conflicts, WhoWaitedAndWasCancelledIsForgottenBeforeThatEnds) {
  Mailbox<int> go;
  Executor executor(8);
  const auto tenant = std::make_shared<Tenant>("one", TenantPolicy());
  ASSERT_TRUE(executor
                  .submit(job([&] {
                            go.take();
                            return Job::Next::done;
                          }),
                          {tenant, {}, bytes(0, 8, true)})
                  .ok());
  std::vector<std::weak_ptr<Job>> waited;
  for (int i = 0; i < 1'000; ++i) {
    const auto waits = job([] { return Job::Next::done; });
    while (!executor.submit(waits, {tenant, {}, bytes(0, 8, true)}).ok()) std::this_thread::yield();
    executor.expedite(waits);
    waited.push_back(waits);
  }
  while (executor.held() > 0 || executor.admitted() > 1) std::this_thread::yield();
  const auto kept =
      std::count_if(waited.begin(), waited.end(), [](const auto& job) { return !job.expired(); });
  EXPECT_LT(kept, 100);
  go.put(1);
  const std::atomic<bool> never = false;
  executor.wait_until_idle(never);
}

TEST_F(Conflicts, TheLaterOneWaitsUntilTheEarlierOneHasEnded) {
  const auto blocker = server::testing::Blocker::hold(executor_);
  submit(in_two("a"), writes(0, 8));
  submit(in_two("b"), writes(4, 12), 2, other_);
  submit(in_two("c"), writes(20, 24), 3, other_);
  EXPECT_EQ(executor_.held(), 1u);
  blocker->release();
  const std::string order = take(6);
  EXPECT_LT(order.rfind('a'), order.find('b')) << order;
  EXPECT_LT(order.find('c'), order.find('b')) << "who meets nobody waits for nobody: " << order;
}

TEST_F(Conflicts, AcrossLanesTheLaterOneWaitsToo) {
  Mailbox<int> go;
  const auto first = job([&] {
    go.take();
    turns_.put("gpu ");
    return Job::Next::done;
  });
  ASSERT_TRUE(executor_.submit(first, {tenant_, {}, writes(0, 8), WorkKind::launch, "cuda:0"}).ok());
  submit(in_two("cpu "), bytes(4, 12, false));
  ASSERT_TRUE(
      executor_.submit(in_two("other gpu "), {tenant_, {}, writes(8, 12), WorkKind::launch, "cuda:1"}).ok());
  EXPECT_EQ(executor_.held(), 2u);
  go.put(1);
  EXPECT_EQ(take(5), "gpu cpu cpu other gpu other gpu ");
}

TEST_F(Conflicts, ReadersTakeTurns) {
  const auto blocker = server::testing::Blocker::hold(executor_);
  submit(in_two("a"), bytes(0, 8, false));
  submit(in_two("b"), bytes(0, 8, false));
  EXPECT_EQ(executor_.held(), 0u);
  blocker->release();
  EXPECT_EQ(take(4), "abab");
}

TEST_F(Conflicts, AChainRunsInTheOrderOfArrival) {
  const auto blocker = server::testing::Blocker::hold(executor_);
  std::string expected;
  for (char name = 'a'; name <= 'z'; ++name) {
    submit(in_two(std::string(1, name)), writes(0, 8), static_cast<std::uint64_t>(name),
           name % 2 == 0 ? tenant_ : other_);
    expected += std::string(2, name);
  }
  blocker->release();
  EXPECT_EQ(take(52), expected);
}

TEST_F(Conflicts, OneThatIsCancelledWhileItWaitsEndsAtOnceAndHoldsNobody) {
  const auto parked = calling("a");
  submit(parked, writes(0, 8), 1);
  EXPECT_EQ(turns_.take(), "a");
  Mailbox<int> ended;
  const auto cancelled = job([&] {
    ended.put(1);
    return Job::Next::done;
  });
  submit(cancelled, writes(0, 8), 2, other_);
  submit(in_two("c"), writes(0, 8), 3, other_);
  EXPECT_EQ(executor_.held(), 2u);
  executor_.expedite(cancelled);
  ended.take();
  settle();
  EXPECT_TRUE(turns_.empty()) << "c waits for a still";
  executor_.resume(parked);
  EXPECT_EQ(take(3), "acc");
}

TEST_F(Conflicts, WhatComesWithinAHostCallOfItsOwnSessionDoesNotWaitForIt) {
  const auto parked = calling("a");
  submit(parked, writes(0, 8), 1);
  EXPECT_EQ(turns_.take(), "a");
  settle();
  // Of another session, so it waits for a; what a's callable launches must not wait for it then.
  submit(in_two("b"), writes(0, 8), 2, other_);
  submit(in_two("c"), writes(0, 8), 1);
  EXPECT_EQ(take(2), "cc");
  settle();
  EXPECT_TRUE(turns_.empty());
  executor_.resume(parked);
  EXPECT_EQ(take(3), "abb");
}

// A client is quick: it may have answered its call before the job that called it has left the thread.
TEST_F(Conflicts, WhatComesBeforeTheCallerHasLeftTheThreadDoesNotWaitForItEither) {
  std::shared_ptr<Job> caller;
  caller = job([&, left = 2]() mutable {
    turns_.put("a");
    if (--left == 0) return Job::Next::done;
    executor_.park(*caller);
    submit(in_two("b"), writes(0, 8), 1);
    submit(in_two("c"), writes(0, 8), 2, other_);
    return Job::Next::parked;
  });
  submit(caller, writes(0, 8), 1);
  EXPECT_EQ(take(3), "abb");
  settle();
  EXPECT_TRUE(turns_.empty()) << "c, of another session, waits for a";
  executor_.resume(caller);
  EXPECT_EQ(take(3), "acc");
}

TEST_F(Conflicts, WithinAHostCallLaunchesKeepTheirOrder) {
  const auto parked = calling("a");
  submit(parked, writes(0, 8), 1);
  EXPECT_EQ(turns_.take(), "a");
  settle();
  const auto blocker = server::testing::Blocker::hold(executor_);
  for (const char* name : {"b", "c", "d"}) submit(in_two(name), writes(0, 8), 1);
  blocker->release();
  EXPECT_EQ(take(6), "bbccdd");
  executor_.resume(parked);
  EXPECT_EQ(take(1), "a");
}

TEST_F(Conflicts, AtTheEndNothingIsHeldAndNothingIsKept) {
  std::weak_ptr<Job> seen;
  {
    const auto first = in_two("a");
    const auto second = in_two("b");
    seen = second;
    submit(first, writes(0, 8));
    submit(second, writes(0, 8));
  }
  take(4);
  const std::atomic<bool> never = false;
  executor_.wait_until_idle(never);
  EXPECT_EQ(executor_.held(), 0u);
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace eagle::server
