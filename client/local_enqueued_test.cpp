// Launches that a process enqueues on a GPU of its own, from several threads at once: what the Python tests
// of tests/integration/test_gpu_enqueued.py see one call after the other. The fake driver plays the GPU.
#include "client/local_enqueued.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/local_enqueued_testing.h"
#include "eagle/client/graph.h"
#include "eagle/client/session.h"
#include "engine/run/cuda/pretend.h"

namespace eagle {
namespace {

using ::testing::AnyOf;
using testing::for_ever;
using testing::gpu;
using ::testing::HasSubstr;
using testing::line;
using testing::spin;

constexpr std::int64_t samples = 8;

template <typename T>
T must(StatusOr<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  if (!result.ok()) std::abort();
  return *std::move(result);
}

Session open() { return must(local()); }

Array<double> array(const Session& session) { return must(session.zeros<double>({samples}, gpu)); }

Graph built(const Session& session, BoundPlan plan) {
  Graph g(session);
  EXPECT_TRUE(g.add(std::move(plan)).ok());
  const Status status = g.build();
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(g.backend(), gpu);
  return g;
}
// x = x + 1
Graph counting(const Session& session, const Array<double>& x) { return built(session, line(x, x)); }
Graph endless(const Session& session, const Array<double>& x) { return built(session, spin(x)); }

// What all samples are; they are all the same.
double value_of(const Session& session, const Array<double>& x) {
  const Status fetched = session.fetch(x);
  EXPECT_TRUE(fetched.ok()) << fetched.to_string();
  for (std::int64_t i = 1; i < samples; ++i) EXPECT_EQ(x[i], x[0]) << "half of a launch was seen";
  return x[0];
}

// Each in a thread of its own, begun together.
template <typename Work>
void in_threads(int count, const Work& work) {
  std::atomic<int> waiting = count;
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      for (--waiting; waiting > 0;) std::this_thread::yield();
      work(i);
    });
  }
}

TEST(LocalEnqueued, ThreadsWithArraysOfTheirOwnGetWhatLaunchesGive) {
  const Session session = open();
  constexpr std::uint32_t seed = 20261201;
  SCOPED_TRACE(seed);
  in_threads(4, [&](int number) {
    std::mt19937 random(seed + static_cast<std::uint32_t>(number));
    const auto x = array(session);
    Graph g = counting(session, x);
    double wanted = 0;
    for (int round = 0; round < 40; ++round) {
      const auto times = static_cast<std::int64_t>(random() % 5);
      ASSERT_TRUE(g.enqueue(times).ok());
      wanted += static_cast<double>(times);
      if (random() % 2 == 0) {
        EXPECT_EQ(value_of(session, x), wanted);
      }
      EXPECT_EQ(must(g.synchronize()).launches, times);
    }
    EXPECT_EQ(value_of(session, x), wanted);
  });
}

TEST(LocalEnqueued, ThreadsOverOneArrayComeOneAfterTheOther) {
  const Session session = open();
  const auto x = array(session);
  constexpr int threads = 4, rounds = 30;
  in_threads(threads, [&](int) {
    Graph g = counting(session, x);
    for (int round = 0; round < rounds; ++round) {
      const Status done = g.enqueue(2);
      ASSERT_TRUE(done.ok()) << done.to_string();
      const auto report = g.synchronize();
      ASSERT_TRUE(report.ok()) << report.status().to_string();
      EXPECT_EQ(report->launches, 2);
    }
  });
  EXPECT_EQ(value_of(session, x), 2.0 * threads * rounds);
}

TEST(LocalEnqueued, SessionsOverOneArrayComeOneAfterTheOtherToo) {
  const Session first = open(), second = open();
  constexpr std::uint64_t bytes = samples * sizeof(double);
  const auto memory = must(first.allocate(bytes, {}, Contents::zeros, gpu));
  const auto there = must(memory->on_device());
  const Array<double> x(memory, {samples});
  const Array<double> same(must(second.import_on_device({there.pointer, bytes, there.keep_alive})),
                           {samples});
  in_threads(2, [&](int number) {
    Graph g = number == 0 ? counting(first, x) : counting(second, same);
    for (int round = 0; round < 50; ++round) {
      ASSERT_TRUE(g.enqueue(3).ok());
      ASSERT_TRUE(g.synchronize().ok());
    }
  });
  EXPECT_EQ(value_of(first, x), 300.0);
}

TEST(LocalEnqueued, ACancelFromAnotherThreadStopsItOrComesTooLate) {
  const Session session = open();
  const auto x = array(session);
  Graph g = counting(session, x);
  double least = 0;
  for (int round = 0; round < 40; ++round) {
    ASSERT_TRUE(g.enqueue(round % 2 == 0 ? 3 : for_ever).ok());
    std::jthread canceller([&] { g.cancel(); });
    const Status ended = g.synchronize().status();
    canceller.join();
    EXPECT_TRUE(ended.ok() || ended.reason() == Reason::cancelled) << ended.to_string();
    EXPECT_FALSE(ended.ok() && round % 2 == 1);
    const double now = value_of(session, x);
    EXPECT_GE(now, ended.ok() ? least + 3 : least);
    least = now;
  }
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(value_of(session, x), least + 1);
}

TEST(LocalEnqueued, SeveralThatWaitForOneThatIsStoppedAllGoOn) {
  const Session session = open();
  const auto x = array(session);
  std::optional<Graph> first = endless(session, x);
  ASSERT_TRUE(first->enqueue().ok());
  std::atomic<int> begun = 0;
  in_threads(3, [&](int number) {
    if (number == 0) {
      while (begun < 2) std::this_thread::yield();
      first.reset();  // which stops what it enqueued
      return;
    }
    Graph g = built(session, line(x, array(session)));
    ++begun;
    const Status launched = number == 1 ? g.replay() : g.enqueue();
    EXPECT_TRUE(launched.ok()) << launched.to_string();
    EXPECT_TRUE(g.synchronize().ok());
  });
}

TEST(LocalEnqueued, OneThatWaitsBehindItHeedsItsOwnFlagAndDeadline) {
  const Session session = open();
  const auto x = array(session);
  Graph first = endless(session, x);
  Graph behind = counting(session, x);
  ASSERT_TRUE(first.enqueue().ok());
  LaunchOptions options;
  options.timeout = std::chrono::milliseconds(20);
  const Status late = behind.launch(1, options).status();
  EXPECT_EQ(late.reason(), Reason::deadline);
  EXPECT_THAT(late.message(), HasSubstr("enqueued over the same arrays"));
  options.timeout.reset();
  options.cancel = std::make_shared<std::atomic<bool>>(false);
  std::jthread canceller([&] { *options.cancel = true; });
  const Status cancelled = behind.launch(1, options).status();
  EXPECT_EQ(cancelled.reason(), Reason::cancelled);
  EXPECT_THAT(cancelled.message(), HasSubstr("enqueued over the same arrays"));
  first.cancel();
  EXPECT_EQ(first.synchronize().status().reason(), Reason::cancelled);
  EXPECT_TRUE(behind.launch().ok());
}

TEST(LocalEnqueued, ClosingTheSessionEndsWhatItsThreadsEnqueueAndWaitFor) {
  for (int round = 0; round < 5; ++round) {
    std::optional<Session> session = open();
    std::atomic<int> enqueued = 0;
    in_threads(4, [&](int number) {
      if (number == 0) {
        while (enqueued < 3) std::this_thread::yield();
        EXPECT_TRUE(session->close().ok());
        return;
      }
      const auto x = array(*session);
      Graph g = number == 1 ? endless(*session, x) : counting(*session, x);
      EXPECT_TRUE(g.enqueue(for_ever).ok());
      ++enqueued;
      const Status ended = g.synchronize().status();
      EXPECT_THAT(ended.reason(), AnyOf(Reason::session_closed, Reason::cancelled)) << ended.to_string();
      EXPECT_EQ(g.launch().status().reason(), Reason::session_closed);
    });
  }
}

TEST(LocalEnqueued, GraphsAndSessionsMayGoInAnyOrderWithWorkUnderWay) {
  for (int round = 0; round < 8; ++round) {
    std::optional<Session> session = open();
    std::optional<Array<double>> x = array(*session);
    std::optional<Graph> g = counting(*session, *x);
    ASSERT_TRUE(g->enqueue(for_ever).ok());
    // Graph, array and session, in each order.
    for (int step = 0; step < 3; ++step) {
      const int which = (round + step * (round % 2 == 0 ? 1 : 2)) % 3;
      if (which == 0) g.reset();
      if (which == 1) x.reset();
      if (which == 2) session.reset();
    }
  }
  const Session after = open();
  const auto x = array(after);
  Graph g = counting(after, x);
  ASSERT_TRUE(g.launch(2).ok());
  EXPECT_EQ(value_of(after, x), 2.0);
}

// A GPU of this process that has failed stays so: these have processes of their own (ctest).
TEST(LocalEnqueued, AFaultComesOutWhereItIsCollectedAndWhereOthersWait) {
  run::cuda::testing::pretend("fail_launch=3");
  const Session session = open();
  const auto x = array(session);
  Graph g = counting(session, x);
  ASSERT_TRUE(g.enqueue(1000).ok());
  std::jthread behind([&] {
    const auto y = session.zeros<double>({samples}, gpu);
    if (!y.ok()) return;  // the GPU had failed by then
    Graph other(session);
    EXPECT_TRUE(other.add(line(x, *y)).ok());
    if (!other.build().ok()) return;
    EXPECT_THAT(other.launch().status().message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  });
  EXPECT_THAT(g.synchronize().status().message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  behind.join();
  EXPECT_THAT(g.launch().status().message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

}  // namespace
}  // namespace eagle
