#include "server/work_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

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

TEST(WorkPool, EveryAcceptedTaskRuns) {
  std::atomic<int> ran = 0;
  {
    WorkPool pool(2, 100, "things");
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }).ok());
  }
  EXPECT_EQ(ran, 50);
}

}  // namespace
}  // namespace eagle::server
