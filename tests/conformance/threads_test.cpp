// Several threads: distinct graphs run side by side, one graph is for one caller at a time.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

class Threads : public OnEveryHost {};
EAGLE_ON_EVERY_HOST(Threads);

TEST_P(Threads, DistinctGraphsOfOneSessionRunSideBySide) {
  constexpr int graphs = 8;
  constexpr int rounds = 50;
  std::vector<std::jthread> threads;
  std::vector<Status> outcomes(graphs);
  std::vector<Array<double>> arrays;
  for (int i = 0; i < graphs; ++i) arrays.push_back(zeros<double>({1000}));
  for (int i = 0; i < graphs; ++i) {
    threads.emplace_back([&, i] {
      const auto index = static_cast<std::size_t>(i);
      outcomes[index] = [&]() -> Status {
        const Array<double>& x = arrays[index];
        Graph g(session());
        EAGLE_RETURN_IF_ERROR(g.add({affine(), {{"x", x}, {"y", x}, {"a", 1.0}, {"b", double(i)}}}));
        EAGLE_RETURN_IF_ERROR(g.build());
        for (int round = 0; round < rounds; ++round) EAGLE_RETURN_IF_ERROR(g.launch().status());
        return {};
      }();
    });
  }
  threads.clear();
  for (std::size_t i = 0; i < graphs; ++i) {
    EXPECT_TRUE(outcomes[i].ok()) << outcomes[i].to_string();
    for (const double value : arrays[i].span()) ASSERT_EQ(value, double(rounds) * double(i));
  }
}

// Two graphs whose host nodes wait for each other: neither launch may hold the other one up.
TEST_P(Threads, LaunchesWithHostNodesDoNotWaitForEachOther) {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  const auto meet = [&] {
    std::unique_lock lock(mutex);
    ++inside;
    changed.notify_all();
    changed.wait(lock, [&] { return inside == 2; });
    return Status();
  };
  Graph a(session());
  Graph b(session());
  for (Graph* g : {&a, &b}) {
    ASSERT_TRUE(g->add_node(opaque(meet, {})).ok());
    ASSERT_TRUE(g->build().ok());
  }
  Status other;
  std::jthread thread([&] { other = b.launch().status(); });
  EXPECT_TRUE(a.launch().ok());
  thread.join();
  EXPECT_TRUE(other.ok()) << other.to_string();
}

TEST_P(Threads, ASecondCallerOfOneGraphIsBusyAndLookingIsNot) {
  std::mutex mutex;
  std::condition_variable changed;
  bool inside = false;
  bool leave = false;
  Graph g(session());
  ASSERT_TRUE(g.add_node(opaque(
                             [&] {
                               std::unique_lock lock(mutex);
                               inside = true;
                               changed.notify_all();
                               changed.wait(lock, [&] { return leave; });
                               return Status();
                             },
                             {}))
                  .ok());
  ASSERT_TRUE(g.build().ok());
  Status first;
  std::jthread launching([&] { first = g.launch().status(); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return inside; });
  }
  expect_refused(g.launch().status(), Reason::busy, {"launch", "give each thread its own Graph"});
  EXPECT_TRUE(g.built());
  EXPECT_EQ(must(g.host_picture()), must(g.show()));
  {
    const std::scoped_lock lock(mutex);
    leave = true;
  }
  changed.notify_all();
  launching.join();
  EXPECT_TRUE(first.ok()) << first.to_string();
}

TEST_P(Threads, AHostNodeMayLaunchAnotherGraph) {
  const auto x = full<double>(8, 1.0);
  const auto y = zeros<double>({8});
  Graph inner(session());
  ASSERT_TRUE(inner.add({affine(), {{"x", x}, {"y", y}, {"a", 2.0}, {"b", 0.0}}}).ok());
  ASSERT_TRUE(inner.build().ok());
  Graph outer(session());
  int before = 0;
  const auto launch_inner = [&] {
    ++before;
    return inner.launch().status();
  };
  ASSERT_TRUE(outer.add_node(opaque(launch_inner, {{{"x", x}}, {{"y", y}}}), "inner").ok());
  ASSERT_TRUE(outer.add({affine(), {{"x", y}, {"y", y}, {"a", 1.0}, {"b", 1.0}}}, "outer").ok());
  ASSERT_TRUE(outer.build().ok());
  ASSERT_TRUE(outer.launch(3).ok());
  EXPECT_EQ(before, 3);
  EXPECT_EQ(y[7], 3.0);
}

// Inside the caller's own region a graph runs in place, on the thread that launches it.
TEST_P(Threads, ALaunchFromTheCallersOwnParallelRegionRunsThere) {
  constexpr int callers = 3;
  constexpr std::int64_t samples = 20'000;
  std::vector<Array<double>> arrays;
  std::vector<Status> outcomes(callers);
  for (int i = 0; i < callers; ++i) arrays.push_back(full<double>(samples, static_cast<double>(i)));
#pragma omp parallel for num_threads(callers)
  for (int i = 0; i < callers; ++i) {
    const auto index = static_cast<std::size_t>(i);
    outcomes[index] = [&]() -> Status {
      const Array<double>& x = arrays[index];
      Graph g(session());
      EAGLE_RETURN_IF_ERROR(g.add({affine(), {{"x", x}, {"y", x}, {"a", 2.0}, {"b", 1.0}}}));
      EAGLE_RETURN_IF_ERROR(g.build());
      return g.launch(2).status();
    }();
  }
  for (int i = 0; i < callers; ++i) {
    const auto index = static_cast<std::size_t>(i);
    EXPECT_TRUE(outcomes[index].ok()) << outcomes[index].to_string();
    for (const double value : arrays[index].span()) ASSERT_EQ(value, 4.0 * i + 3.0);
  }
}

TEST_P(Threads, SessionsOfOneProcessAreIndependent) {
  const Session other = must(GetParam().open());
  const auto mine = full<double>(8, 1.0);
  const auto theirs = must(other.full<double>({8}, 1.0));
  ASSERT_TRUE(other.close().ok());
  EXPECT_EQ(theirs[0], 1.0);
  EXPECT_EQ(mine[0], 1.0);
  expect_works();
}

}  // namespace
}  // namespace eagle::conformance
