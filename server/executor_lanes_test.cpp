// What runs on GPUs, beside what does not.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "server/executor.h"
#include "server/executor_testing.h"
#include "server/testing.h"

namespace eagle::server {
namespace {

using server::testing::Endless;
using server::testing::job;
using server::testing::Mailbox;

const std::shared_ptr<Tenant>& somebody() {
  static const auto tenant = std::make_shared<Tenant>("somebody", TenantPolicy());
  return tenant;
}

TEST(Lanes, WhatAGpuComputesHoldsUpNeitherTheCpuNorAnotherGpu) {
  Executor executor(8);
  const auto endless = std::make_shared<Endless>();
  ASSERT_TRUE(executor.submit(endless, {somebody(), {}, nullptr, WorkKind::launch, "cuda:0"}).ok());
  endless->wait_until_it_runs();
  Mailbox<std::string> ended;
  for (const char* const device : {"", "cpu", "cuda:1"}) {
    const auto other = job([&ended, device] {
      ended.put(device);
      return Job::Next::done;
    });
    ASSERT_TRUE(executor.submit(other, {somebody(), {}, nullptr, WorkKind::launch, device}).ok());
    EXPECT_EQ(ended.take(), device);
  }
  EXPECT_NE(executor.running().find("on cuda:0"), std::string::npos) << executor.running();
  endless->cancel();
  const std::atomic<bool> never = false;
  executor.wait_until_idle(never);
}

TEST(Lanes, JobsOfOneGpuTakeTurns) {
  Mailbox<std::string> turns;
  Mailbox<int> go;
  Executor executor(8);
  const Executor::Owner owner{somebody(), {}, nullptr, WorkKind::launch, "cuda:0"};
  ASSERT_TRUE(executor
                  .submit(job([&] {
                            go.take();
                            return Job::Next::done;
                          }),
                          owner)
                  .ok());
  const auto three_turns = [&turns](std::string name) {
    return job([&turns, name, left = 3]() mutable {
      turns.put(name);
      return --left == 0 ? Job::Next::done : Job::Next::again;
    });
  };
  ASSERT_TRUE(executor.submit(three_turns("a"), owner).ok());
  ASSERT_TRUE(executor.submit(three_turns("b"), owner).ok());
  go.put(1);
  std::string order;
  for (int i = 0; i < 6; ++i) order += turns.take();
  EXPECT_EQ(order, "ababab");
}

TEST(Lanes, AJobThatParkedGoesOnInItsOwn) {
  Mailbox<std::thread::id> turns;
  Executor executor(8);
  const auto calling = job([&, left = 2]() mutable {
    turns.put(std::this_thread::get_id());
    return --left == 0 ? Job::Next::done : Job::Next::parked;
  });
  const auto blocker = server::testing::Blocker::hold(executor);  // the executor's own
  ASSERT_TRUE(executor.submit(calling, {somebody(), {}, nullptr, WorkKind::launch, "cuda:0"}).ok());
  const std::thread::id lane = turns.take();
  executor.resume(calling);
  EXPECT_EQ(turns.take(), lane);
  blocker->release();
}

TEST(Lanes, WhatGivesWayToNobodyIsStoppedForWhomeverWaitsThere) {
  const auto other = std::make_shared<Tenant>("other", TenantPolicy());
  Executor executor(8);
  const auto endless = std::make_shared<Endless>();
  ASSERT_TRUE(executor.submit(endless, {somebody(), {}, nullptr, WorkKind::launch, "cuda:0"}).ok());
  endless->wait_until_it_runs();
  constexpr std::chrono::milliseconds none(0);
  const auto blocker = server::testing::Blocker::hold(executor);
  const auto once = [] { return job([] { return Job::Next::done; }); };
  ASSERT_TRUE(executor.submit(once(), {other, {}, nullptr, WorkKind::launch, "cuda:1"}).ok());
  EXPECT_EQ(executor.stop_overlong(none), "") << "who waits elsewhere does not wait for it";
  ASSERT_TRUE(executor.submit(once(), {other, {}, nullptr, WorkKind::launch, "cuda:0"}).ok());
  EXPECT_NE(executor.stop_overlong(none).find("on cuda:0"), std::string::npos);
  blocker->release();
  const std::atomic<bool> never = false;
  executor.wait_until_idle(never);
  EXPECT_EQ(endless->why().reason(), Reason::quota);
}

TEST(Lanes, AnExpeditedJobEndsWhileAnotherHasTheGpu) {
  Mailbox<int> ended;
  Executor executor(8);
  const auto endless = std::make_shared<Endless>();
  const Executor::Owner owner{somebody(), {}, nullptr, WorkKind::launch, "cuda:0"};
  ASSERT_TRUE(executor.submit(endless, owner).ok());
  endless->wait_until_it_runs();
  const auto cancelled = job([&] {
    ended.put(1);
    return Job::Next::done;
  });
  ASSERT_TRUE(executor.submit(cancelled, owner).ok());
  executor.expedite(cancelled);
  ended.take();
  endless->cancel();
  const std::atomic<bool> never = false;
  executor.wait_until_idle(never);
}

}  // namespace
}  // namespace eagle::server
