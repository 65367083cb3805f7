#include "client/idle_queues.h"

#include <grpcpp/alarm.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

namespace eagle {
namespace {

TEST(IdleQueues, TheOneThatWasGivenBackIsUsedAgain) {
  auto queue = IdleQueues::take();
  const auto* const first = queue.get();
  IdleQueues::give_back(std::move(queue));
  queue = IdleQueues::take();
  EXPECT_EQ(queue.get(), first);
  IdleQueues::give_back(std::move(queue));
}

TEST(IdleQueues, CallsAtTheSameTimeHaveDifferentOnes) {
  auto one = IdleQueues::take();
  auto other = IdleQueues::take();
  EXPECT_NE(one, other);
  IdleQueues::give_back(std::move(one));
  IdleQueues::give_back(std::move(other));
}

// What ended on a queue before is not heard by the call after it.
TEST(IdleQueues, EachCallHearsOfItsOwn) {
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([] {
      for (std::intptr_t i = 1; i <= 200; ++i) {
        auto queue = IdleQueues::take();
        grpc::Alarm alarm;
        alarm.Set(queue.get(), std::chrono::system_clock::now(), reinterpret_cast<void*>(i));
        void* tag = nullptr;
        bool ok = false;
        ASSERT_TRUE(queue->Next(&tag, &ok));
        EXPECT_EQ(tag, reinterpret_cast<void*>(i));
        IdleQueues::give_back(std::move(queue));
      }
    });
  }
}

std::size_t descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST(IdleQueues, OfManyAFewAreKept) {
  std::vector<std::unique_ptr<grpc::CompletionQueue>> many;
  for (int i = 0; i < 64; ++i) many.push_back(IdleQueues::take());
  for (auto& queue : many) IdleQueues::give_back(std::move(queue));
  const std::size_t with_a_few = descriptors();
  many.clear();
  for (int i = 0; i < 64; ++i) many.push_back(IdleQueues::take());
  for (auto& queue : many) IdleQueues::give_back(std::move(queue));
  EXPECT_LE(descriptors(), with_a_few);
}

}  // namespace
}  // namespace eagle
