#include "server/work_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "server/testing.h"

namespace eagle::server {
namespace {

using server::testing::Mailbox;

TEST(WorkPool, WaitingTasksAreBounded) {
  Mailbox<int> started;
  Mailbox<int> go;
  WorkPool pool(1, 1, "things");
  ASSERT_TRUE(pool.submit([&] {
                    started.put(1);
                    go.take();
                  })
                  .ok());
  started.take();
  ASSERT_TRUE(pool.submit([] {}).ok());
  const Status full = pool.submit([] {});
  EXPECT_EQ(full.reason(), Reason::quota);
  EXPECT_NE(full.message().find("things"), std::string::npos);
  go.put(1);
}

// Keeps threads of a pool until it is told to let one go.
struct Slow {
  Mailbox<int> started;
  Mailbox<int> go;
  std::function<void()> task() {
    return [this] {
      started.put(1);
      go.take();
    };
  }
};

TEST(WorkPool, TenantsTakeTurns) {
  Mailbox<std::string> order;
  Slow slow;
  std::string all;
  {
    WorkPool pool(1, 100, "things");
    ASSERT_TRUE(pool.submit(slow.task(), "first").ok());
    slow.started.take();
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(pool.submit([&] { order.put("a"); }, "a").ok());
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(pool.submit([&] { order.put("b"); }, "b").ok());
    slow.go.put(1);
  }
  while (!order.empty()) all += order.take();
  EXPECT_EQ(all, "ababaa");
}

TEST(WorkPool, OneTenantHasHalfOfWhatMayWaitAndIsToldSo) {
  Slow slow;
  WorkPool pool(1, 8, "things");
  ASSERT_TRUE(pool.submit(slow.task(), "greedy").ok());
  slow.started.take();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(pool.submit([] {}, "greedy").ok()) << i;
  const Status refused = pool.submit([] {}, "greedy");
  EXPECT_EQ(refused.reason(), Reason::quota);
  for (const char* part : {"'greedy'", "(things)"})
    EXPECT_NE(refused.message().find(part), std::string::npos) << refused.message();
  EXPECT_TRUE(pool.submit([] {}, "modest").ok());
  slow.go.put(1);
}

// Several may fill the queue together; who has nothing in it is still admitted.
TEST(WorkPool, AFullQueueRefusesNobodysFirst) {
  Slow slow;
  WorkPool pool(1, 4, "things");
  ASSERT_TRUE(pool.submit(slow.task(), "a").ok());
  slow.started.take();
  for (const char* tenant : {"a", "a", "b", "b"}) ASSERT_TRUE(pool.submit([] {}, tenant).ok());
  EXPECT_TRUE(pool.submit([] {}, "c").ok());
  EXPECT_EQ(pool.submit([] {}, "c").reason(), Reason::quota);
  EXPECT_EQ(pool.submit([] {}).reason(), Reason::quota) << "the daemon's own waits its turn";
  slow.go.put(1);
}

TEST(WorkPool, OneTenantsSlowWorkLeavesAThreadForTheOthers) {
  Slow slow;
  Mailbox<int> done;
  WorkPool pool(3, 100, "things");
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(pool.submit(slow.task(), "slow").ok());
  slow.started.take();
  slow.started.take();
  ASSERT_TRUE(pool.submit([&] { done.put(1); }, "quick").ok());
  done.take();
  EXPECT_TRUE(slow.started.empty()) << "the third thread is not for it";
  for (int i = 0; i < 4; ++i) slow.go.put(1);
}

TEST(WorkPool, EveryAcceptedTaskRuns) {
  std::atomic<int> ran = 0;
  {
    WorkPool pool(2, 100, "things");
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }, i % 2 == 0 ? "" : "t").ok());
  }
  EXPECT_EQ(ran, 50);
}

}  // namespace
}  // namespace eagle::server
