// Arrays of a session: what they hold, how long they live, whose they are.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

class Arrays : public OnEveryHost {};
EAGLE_ON_EVERY_HOST(Arrays);

TEST_P(Arrays, AreZeroAndAlignedAndBelongToTheirSession) {
  for (const std::int64_t n : {1, 8, 1000, 100'000}) {
    const auto x = zeros<double>({n});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.span().data()) % 64, 0u);
    EXPECT_TRUE(std::all_of(x.span().begin(), x.span().end(), [](double value) { return value == 0; }));
    EXPECT_TRUE(session().owns(x.span().data()));
    EXPECT_TRUE(session().owns(&x[n - 1]));
  }
  double elsewhere = 0;
  EXPECT_FALSE(session().owns(&elsewhere));
}

// Memory of arrays that are gone is used again: within its session, and cleared where zeros are asked for.
TEST_P(Arrays, ThatFollowOthersInTheirMemoryAreZeroAndCanBeComputedOn) {
  for (const std::int64_t n : {100, 100'000, 1'000'000}) {
    for (int round = 1; round <= 3; ++round) {
      const auto x = zeros<double>({n});
      ASSERT_TRUE(std::all_of(x.span().begin(), x.span().end(), [](double value) { return value == 0; }))
          << n << " elements, round " << round;
      const auto y = must(session().empty<double>({n}));
      const auto ones = full<double>(n, 1.0);
      Graph g(session());
      ASSERT_TRUE(g.add({affine(), {{"x", ones}, {"y", x}, {"a", double(round)}, {"b", 0.0}}}).ok());
      ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", y}, {"a", 2.0}, {"b", 0.0}}}).ok());
      ASSERT_TRUE(g.build().ok());
      ASSERT_TRUE(g.launch().ok());
      ASSERT_EQ(x[n - 1], round);
      ASSERT_EQ(y[0], 2 * round);
    }
  }
}

TEST_P(Arrays, HoldCopiesOfWhatTheyAreMadeFrom) {
  std::vector<std::int64_t> values(100);
  std::iota(values.begin(), values.end(), -50);
  const auto x = must(session().copy<std::int64_t>(values));
  EXPECT_THAT(x.span(), ::testing::ElementsAreArray(values));
}

TEST_P(Arrays, OfNoElementsAreFine) { EXPECT_EQ(zeros<double>({0}).size(), 0); }

TEST_P(Arrays, ThatCannotBeAreRefused) {
  expect_refused(session().zeros<double>({-1}).status(), Reason::bad_value, {"-1"});
  expect_refused(session().zeros<double>({std::int64_t{1} << 40, std::int64_t{1} << 40}).status(),
                 Reason::bad_value, {"2^62"});
}

TEST_P(Arrays, LargerThanTheMachineAreRefusedAndLeaveItServing) {
  const auto huge = session().zeros<double>({std::int64_t{1} << 50});
  EXPECT_EQ(huge.status().code(), Code::resource_exhausted) << huge.status().to_string();
  expect_works();
}

TEST_P(Arrays, StayReadableAndWritableAfterTheSessionIsClosed) {
  const auto small = full<double>(8, 1.5);
  const auto large = full<double>(100'000, 2.5);
  ASSERT_TRUE(session().close().ok());
  EXPECT_TRUE(session().closed());
  EXPECT_EQ(small[7], 1.5);
  EXPECT_EQ(large[99'999], 2.5);
  small[0] = 7;
  EXPECT_EQ(small[0], 7);
}

TEST_P(Arrays, KeepTheirSessionOpenForAsLongAsTheyLive) {
  std::optional<Session> other = must(GetParam().open());
  const auto x = must(other->full<double>({8}, 1.0));
  other.reset();
  EXPECT_EQ(x[7], 1.0);
}

TEST_P(Arrays, CountInWhatTheHostHolds) {
  const auto before = must(session().info());
  {
    const auto x = zeros<double>({1 << 20});
    const auto with = must(session().info());
    EXPECT_EQ(with.planes, before.planes + 1);
    // In a daemon a page more, in which the array begins somewhere (engine/plane/stagger.h).
    EXPECT_GE(with.plane_bytes, before.plane_bytes + (8u << 20));
    EXPECT_LE(with.plane_bytes, before.plane_bytes + (8u << 20) + 4096);
  }
  // The daemon may still be about to forget whom it sent the memory to; the watchdog is what fails.
  auto after = must(session().info());
  while (after.planes != before.planes) after = must(session().info());
  EXPECT_EQ(after.plane_bytes, before.plane_bytes);
}

TEST_P(Arrays, OfAnotherSessionAreRefusedAndBothAreNamed) {
  const Session other = must(GetParam().open());
  const auto x = full<double>(8, 1.0);
  const auto y = must(other.zeros<double>({8}));
  Graph g(session());
  const Status status = g.add({affine(), {{"x", x}, {"y", y}, {"a", 2.0}, {"b", 1.0}}});
  expect_refused(status, Reason::mixed_sessions, {"'y'", session().name(), other.name()});
  expect_works();
}

TEST_P(Arrays, OfAClosedSessionCannotBeComputedOn) {
  const auto x = full<double>(8, 1.0);
  const auto y = zeros<double>({8});
  Graph g(session());
  ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", y}, {"a", 2.0}, {"b", 1.0}}}).ok());
  ASSERT_TRUE(g.build().ok());
  ASSERT_TRUE(session().close().ok());
  expect_refused(g.launch().status(), Reason::session_closed, {"launch", "closed"});
  expect_refused(session().allocate(8).status(), Reason::session_closed, {session().name()});
  EXPECT_TRUE(session().close().ok()) << "closing twice is no mistake";
}

TEST_P(Arrays, AForkedChildReadsThemAndIsToldToOpenItsOwnSession) {
  const auto x = full<double>(8, 1.5);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool readable = x[7] == 1.5;
    const Status info = session().info().status();
    const Status allocated = session().allocate(8).status();
    const bool told = info.reason() == Reason::session_forked && allocated.reason() == Reason::session_forked;
    ::_exit(readable && told ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  expect_works();
}

}  // namespace
}  // namespace eagle::conformance
