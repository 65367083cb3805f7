#include "engine/run/cpu/team_place.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <initializer_list>
#include <thread>
#include <vector>

#include "engine/run/cpu/team.h"

namespace eagle::run {
namespace {

cpu_set_t processors(std::initializer_list<unsigned> numbers) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned number : numbers) CPU_SET(number, &set);
  return set;
}

std::vector<unsigned> numbers(const cpu_set_t& set) {
  std::vector<unsigned> all;
  for (unsigned number = 0; number < CPU_SETSIZE; ++number) {
    if (CPU_ISSET(number, &set)) all.push_back(number);
  }
  return all;
}

std::vector<unsigned> place(const cpu_set_t& allowed, int first, int thread, int threads) {
  return numbers(place_in_team(allowed, first, thread, threads));
}

using Numbers = std::vector<unsigned>;

TEST(PlacesInATeam, AreAProcessorEachWhereThereAreAsManyAsThreads) {
  const cpu_set_t four = processors({0, 1, 2, 3});
  EXPECT_EQ(place(four, 2, 1, 4), Numbers({3}));
  EXPECT_EQ(place(four, 2, 2, 4), Numbers({0}));
  EXPECT_EQ(place(four, 2, 3, 4), Numbers({1}));
}

TEST(PlacesInATeam, HaveTheOnesThatAreNobodysToo) {
  const cpu_set_t some = processors({1, 4, 5, 9, 1023});
  EXPECT_EQ(place(some, 5, 1, 3), Numbers({1, 4, 9}));
  EXPECT_EQ(place(some, 5, 2, 3), Numbers({1, 4, 1023}));
}

TEST(PlacesInATeam, AreNoneWhereProcessorsAreFewerThanThreads) {
  EXPECT_EQ(place(processors({0, 1}), 0, 1, 3), Numbers());
}

TEST(PlacesInATeam, AreNoneWhereTheFirstThreadIsNotWhereItMayBe) {
  const cpu_set_t two = processors({0, 1});
  EXPECT_EQ(place(two, 7, 1, 2), Numbers());
  EXPECT_EQ(place(two, -1, 1, 2), Numbers());
  EXPECT_EQ(place(two, CPU_SETSIZE, 1, 2), Numbers());
}

cpu_set_t affinity_of(pid_t thread) {
  cpu_set_t set;
  EXPECT_EQ(::sched_getaffinity(thread, sizeof set, &set), 0);
  return set;
}

// The first thread of a team, which does nothing.
class First {
public:
  First()
      : thread_([this] {
          id_.set_value(::gettid());
          over_.get_future().wait();
        }) {}
  ~First() {
    over_.set_value();
    thread_.join();
  }
  First(const First&) = delete;
  First& operator=(const First&) = delete;

  [[nodiscard]] pid_t id() const { return known_; }

private:
  std::promise<pid_t> id_;
  std::promise<void> over_;
  std::thread thread_;
  const pid_t known_ = id_.get_future().get();
};

// Longer than a place is kept at least, and than one that was left is kept free.
constexpr std::chrono::milliseconds moves_again{5};
constexpr std::chrono::milliseconds comes_back{200};

// On a thread of its own, whose affinity is lost with it.
class TeamPlaceTest : public ::testing::Test {
protected:
  void SetUp() override {
    if (CPU_COUNT(&all_) < 2) GTEST_SKIP() << "this process may use one processor";
    if (omp_get_proc_bind() != omp_proc_bind_false || std::getenv("OMP_PROC_BIND") != nullptr)
      GTEST_SKIP() << "the environment says where threads run";
  }

  template <typename Body>
  static void on_a_thread(const Body& body) {
    std::thread(body).join();
  }
  // The affinity after its part of a call that was handed out at `processor` so long ago.
  Numbers after(unsigned processor, std::chrono::milliseconds ago = {}) {
    const Ticks begun = ticks_now() - ticks_of(std::chrono::duration<double>(ago).count());
    place_.take({static_cast<int>(processor), first_.id(), begun}, 1, 2);
    return numbers(affinity_of(0));
  }
  [[nodiscard]] Numbers without(unsigned processor) const {
    Numbers others = everywhere_;
    std::erase(others, processor);
    return others;
  }

  const cpu_set_t all_ = affinity_of(0);
  const Numbers everywhere_ = numbers(all_);
  First first_;
  TeamPlace place_;
};

TEST_F(TeamPlaceTest, AThreadLeavesTheProcessorOfTheFirstOne) {
  on_a_thread([&] { EXPECT_EQ(after(everywhere_[0]), without(everywhere_[0])); });
}

TEST_F(TeamPlaceTest, AThreadFollowsWhereTheFirstOneMovesThoughNotAtOnce) {
  on_a_thread([&] {
    EXPECT_EQ(after(everywhere_[0]), without(everywhere_[0]));
    std::this_thread::sleep_for(moves_again);
    EXPECT_EQ(after(everywhere_[1]), without(everywhere_[1]));
    EXPECT_EQ(after(everywhere_[0]), without(everywhere_[1]));
    std::this_thread::sleep_for(moves_again);
    EXPECT_EQ(after(everywhere_[0]), without(everywhere_[0]));
  });
}

TEST_F(TeamPlaceTest, AThreadThatComesLateAgainAndAgainMayRunAnywhereForAWhile) {
  constexpr std::chrono::milliseconds late{100};
  on_a_thread([&] {
    EXPECT_EQ(after(everywhere_[0]), without(everywhere_[0]));
    EXPECT_EQ(after(everywhere_[0], late), without(everywhere_[0]));
    EXPECT_EQ(after(everywhere_[0], late), without(everywhere_[0]));
    EXPECT_EQ(after(everywhere_[0], late), everywhere_);
    EXPECT_EQ(after(everywhere_[0]), everywhere_);
    std::this_thread::sleep_for(comes_back);
    EXPECT_EQ(after(everywhere_[0]), without(everywhere_[0]));
  });
}

TEST_F(TeamPlaceTest, AThreadThatIsLateNowAndThenStays) {
  constexpr std::chrono::milliseconds late{100};
  on_a_thread([&] {
    EXPECT_EQ(after(everywhere_[0]), without(everywhere_[0]));
    for (int i = 0; i < 5; ++i) {
      after(everywhere_[0], late);
      after(everywhere_[0], late);
      EXPECT_EQ(after(everywhere_[0]), without(everywhere_[0]));
    }
  });
}

TEST_F(TeamPlaceTest, AThreadWhosePlaceIsGoneHasWhatItHadBefore) {
  on_a_thread([&] {
    EXPECT_EQ(after(everywhere_[0]), without(everywhere_[0]));
    cpu_set_t one = processors({everywhere_[1]});
    ASSERT_EQ(::sched_setaffinity(first_.id(), sizeof one, &one), 0);
    std::this_thread::sleep_for(moves_again);
    EXPECT_EQ(after(everywhere_[1]), everywhere_);
  });
}

TEST_F(TeamPlaceTest, AProcessorThatNobodyKnowsMovesNobody) {
  on_a_thread([&] {
    place_.take({-1, first_.id(), ticks_now()}, 1, 2);
    EXPECT_EQ(numbers(affinity_of(0)), everywhere_);
  });
}

TEST_F(TeamPlaceTest, TeamsHaveTheirPlaces) {
  on_a_thread([&] {
    for (int i = 0; i < 1000; ++i) {
      unsigned first = 0;
      Numbers second;
      run_team(2, [&](int thread, int) {
        if (thread == 0) first = static_cast<unsigned>(::sched_getcpu());
        if (thread == 1) second = numbers(affinity_of(0));
      });
      // Whoever keeps the machine busy may have moved the first one, or made the second one late.
      if (second == without(first)) return;
      std::this_thread::sleep_for(moves_again);
    }
    ADD_FAILURE() << "the second thread may run where the first one does, a thousand times";
  });
}

}  // namespace
}  // namespace eagle::run
