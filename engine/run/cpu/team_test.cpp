#include "engine/run/cpu/team.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

namespace eagle::run {
namespace {

// Which threads of how many a body was called with.
struct Calls {
  explicit Calls(int most) : of(static_cast<std::size_t>(most), 0) {}
  std::vector<int> of;  // by thread; 0: it was not called
  void operator()(int thread, int threads) { of[static_cast<std::size_t>(thread)] += threads; }
};

std::vector<int> called(int wanted) {
  Calls calls(8);
  run_team(wanted, [&](int thread, int threads) { calls(thread, threads); });
  return calls.of;
}

TEST(Teams, CallEachThreadOnce) {
  EXPECT_EQ(called(1), (std::vector{1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(called(3), (std::vector{3, 3, 3, 0, 0, 0, 0, 0}));
}

TEST(HeldTeams, CallEachThreadOnceAndNoOthers) {
  hold_team(4, [] {
    EXPECT_EQ(called(1), (std::vector{1, 0, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(called(2), (std::vector{2, 2, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(called(4), (std::vector{4, 4, 4, 4, 0, 0, 0, 0}));
    EXPECT_EQ(called(7), (std::vector{4, 4, 4, 4, 0, 0, 0, 0}));  // those that there are
  });
  EXPECT_EQ(called(3), (std::vector{3, 3, 3, 0, 0, 0, 0, 0}));  // and afterwards as before
}

TEST(HeldTeams, SeeWhatWasStoredBeforeAndAreSeenAfterwards) {
  constexpr int rounds = 20'000, threads = 3;
  std::vector<std::int64_t> sums(threads, 0);  // no atomics: the team orders everything
  std::int64_t round = 0;
  hold_team(threads, [&] {
    for (round = 1; round <= rounds; ++round) {
      run_team(threads, [&](int thread, int) { sums[static_cast<std::size_t>(thread)] += round; });
      const std::int64_t sum = std::accumulate(sums.begin(), sums.end(), std::int64_t{0});
      ASSERT_EQ(sum, threads * round * (round + 1) / 2);
    }
  });
}

TEST(HeldTeams, WakeWhoHasGoneToSleep) {
  std::vector<int> calls(2, 0);
  hold_team(2, [&] {
    for (int round = 0; round < 5; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the others sleep by now
      run_team(2, [&](int thread, int) {
        if (thread == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the first one does
        ++calls[static_cast<std::size_t>(thread)];
      });
    }
  });
  EXPECT_EQ(calls, (std::vector{5, 5}));
}

TEST(HeldTeams, RunInPlaceWhatWantsATeamWithinOne) {
  std::vector<std::vector<int>> inner(2);
  std::vector<int> may(2, -1);
  hold_team(2, [&] {
    EXPECT_TRUE(may_have_team());
    run_team(2, [&](int thread, int) {
      const auto at = static_cast<std::size_t>(thread);
      inner[at] = called(2);
      may[at] = may_have_team() ? 1 : 0;
    });
    EXPECT_TRUE(may_have_team());
  });
  const std::vector<int> alone = {1, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(inner, (std::vector{alone, alone}));
  EXPECT_EQ(may, (std::vector{0, 0}));
}

TEST(HeldTeams, AreNotOpenedInSomebodysRegion) {
  std::vector<std::vector<int>> inner(2);
#pragma omp parallel num_threads(2)
  {
    hold_team(2, [&] { inner[static_cast<std::size_t>(omp_get_thread_num())] = called(2); });
  }
  const std::vector<int> alone = {1, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(inner, (std::vector{alone, alone}));
}

TEST(HeldTeams, HeldWithinAHeldOneAreTheSame) {
  hold_team(2, [] {
    hold_team(4, [] { EXPECT_EQ(called(4), (std::vector{2, 2, 0, 0, 0, 0, 0, 0})); });
    EXPECT_EQ(called(2), (std::vector{2, 2, 0, 0, 0, 0, 0, 0}));
  });
}

TEST(HeldTeams, OfSeveralThreadsAreApart) {
  std::vector<std::int64_t> sums(2, 0);
  std::vector<std::thread> owners;
  for (std::int64_t& sum : sums) {
    owners.emplace_back([&sum] {
      std::vector<std::int64_t> of(2, 0);
      hold_team(2, [&] {
        for (int round = 0; round < 2'000; ++round)
          run_team(2, [&](int thread, int) { ++of[static_cast<std::size_t>(thread)]; });
      });
      sum = of[0] + of[1];
    });
  }
  for (std::thread& owner : owners) owner.join();
  EXPECT_EQ(sums, (std::vector<std::int64_t>{4'000, 4'000}));
}

}  // namespace
}  // namespace eagle::run
