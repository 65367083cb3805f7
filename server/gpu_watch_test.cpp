#include "server/gpu_watch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <string>
#include <thread>
#include <tuple>

namespace eagle::server {
namespace {

using namespace std::chrono_literals;

// GPUs whose drivers answer when they are told to.
class GpuWatchTest : public ::testing::Test {
protected:
  struct Gpu {
    std::promise<void> release;
    std::shared_future<void> released = release.get_future().share();
    std::shared_ptr<std::atomic<int>> asked = std::make_shared<std::atomic<int>>(0);
    std::shared_ptr<std::atomic<int>> answered = std::make_shared<std::atomic<int>>(0);
  };
  // Looks so many milliseconds after the beginning.
  void look(int ms, const std::vector<const Gpu*>& gpus) {
    std::vector<GpuWatch::Question> questions;
    for (const Gpu* gpu : gpus) {
      run::cuda::DeviceInfo info;
      info.ordinal = static_cast<int>(questions.size());
      info.uuid = "GPU-" + std::to_string(info.ordinal);
      questions.push_back({info, [released = gpu->released, asked = gpu->asked, answered = gpu->answered] {
                             ++*asked;
                             released.wait();
                             ++*answered;
                           }});
    }
    watch.look(std::move(questions), 100ms, 1000ms, begin + std::chrono::milliseconds(ms));
  }
  // At one moment: the watch knows of an answer a little after it was given.
  template <typename Condition>
  void look_until(const Condition& condition, int ms, const std::vector<const Gpu*>& gpus) {
    while (!condition()) {
      look(ms, gpus);
      std::this_thread::sleep_for(1ms);
    }
  }
  static void wait_for(const std::atomic<int>& count, int value) {
    while (count < value) std::this_thread::sleep_for(1ms);
  }

  const GpuWatch::Clock::time_point begin = GpuWatch::Clock::now();
  std::vector<std::tuple<int, bool, std::int64_t>> told;
  GpuWatch watch{[this](const auto& gpu, bool silent, std::chrono::milliseconds waited) {
    told.emplace_back(gpu.ordinal, silent, waited.count());
  }};
};

TEST_F(GpuWatchTest, AsksAgainAfterThePeriodAndNotBefore) {
  Gpu gpu;
  gpu.release.set_value();
  look(0, {&gpu});
  wait_for(*gpu.answered, 1);
  look(99, {&gpu});
  EXPECT_EQ(*gpu.asked, 1);
  look_until([&] { return *gpu.asked == 2; }, 100, {&gpu});
  wait_for(*gpu.answered, 2);
  EXPECT_TRUE(told.empty());
}

TEST_F(GpuWatchTest, AnotherGpuIsAskedWhileOneDoesNotAnswer) {
  Gpu slow, quick;
  quick.release.set_value();
  look(0, {&slow, &quick});
  wait_for(*slow.asked, 1);
  wait_for(*quick.answered, 1);
  look_until([&] { return *quick.asked == 2; }, 100, {&slow, &quick});
  EXPECT_EQ(*slow.asked, 1);
  slow.release.set_value();
  wait_for(*slow.answered, 1);
}

TEST_F(GpuWatchTest, SilenceIsToldOnceAndSoIsItsEnd) {
  Gpu gpu;
  look(0, {&gpu});
  wait_for(*gpu.asked, 1);
  look(999, {&gpu});
  EXPECT_TRUE(told.empty());
  look(1000, {&gpu});
  look(5000, {&gpu});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0], std::tuple(0, true, 1000));
  EXPECT_EQ(*gpu.asked, 1);
  gpu.release.set_value();
  wait_for(*gpu.answered, 1);
  look_until([&] { return told.size() == 2; }, 6000, {&gpu});
  EXPECT_FALSE(std::get<1>(told[1]));
  wait_for(*gpu.answered, 2);  // it was asked again
}

// What it asked may come back when it is gone.
TEST_F(GpuWatchTest, AnAnswerMayComeAfterItsEnd) {
  Gpu gpu;
  {
    GpuWatch gone([](const auto&, bool, auto) {});
    gone.look({{{},
                [released = gpu.released, answered = gpu.answered] {
                  released.wait();
                  ++*answered;
                }}},
              1ms, 1ms);
  }
  gpu.release.set_value();
  wait_for(*gpu.answered, 1);
}

}  // namespace
}  // namespace eagle::server
