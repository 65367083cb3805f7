// Stopping what runs: cancel, timeout, closing the session. State is at whole steps afterwards, nothing
// computes on the arrays any more, and the session goes on.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

using std::chrono::milliseconds;

class Stopping : public OnEveryHost {
protected:
  static constexpr std::int64_t samples = 4096;
  static constexpr std::int64_t for_ever = std::int64_t{1} << 60;

  // A model that counts its steps in `n` and does not end by itself.
  struct Endless {
    Array<double> n;
    Array<bool> done;
    [[nodiscard]] BoundPlan model() const {
      return {counter(), {{"n", n}, {"limit", 1e300}, {"done", done}}};
    }
  };
  [[nodiscard]] Endless endless() const { return {zeros<double>({samples}), zeros<bool>({samples})}; }

  // Waits until the model has been seen to run.
  static void wait_for_steps(const Endless& run) {
    while (std::atomic_ref<double>(run.n[0]).load() == 0) std::this_thread::yield();
  }
  // Every sample is at a whole step, the furthest at `steps`, and none moves any more.
  static void expect_at_rest(const Endless& run, std::int64_t steps) {
    const std::vector<double> before(run.n.span().begin(), run.n.span().end());
    for (const double n : before) {
      ASSERT_EQ(n, static_cast<double>(static_cast<std::int64_t>(n)));
      ASSERT_LE(n, static_cast<double>(steps));
    }
    EXPECT_EQ(*std::max_element(before.begin(), before.end()), static_cast<double>(steps));
    std::this_thread::yield();
    EXPECT_TRUE(std::equal(before.begin(), before.end(), run.n.span().begin()));
  }
};
EAGLE_ON_EVERY_HOST(Stopping);

TEST_P(Stopping, ACancelledRunEndsAtWholeSteps) {
  if (GetParam().has("copied")) GTEST_SKIP() << "it looks at the arrays while they change";
  const Endless run = endless();
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  std::jthread canceller([&] {
    wait_for_steps(run);
    *cancel = true;
  });
  const RunResult result = must(session().simulate(run.model(), {for_ever, {}, cancel}));
  EXPECT_EQ(result.status, RunStatus::cancelled);
  EXPECT_GT(result.report.steps, 0);
  expect_at_rest(run, result.report.steps);
  expect_works();
}

TEST_P(Stopping, ARunThatWasCancelledBeforeItBeganTakesNoStepOrFew) {
  const Endless run = endless();
  const auto cancel = std::make_shared<std::atomic<bool>>(true);
  const StatusOr<RunResult> result = session().simulate(run.model(), {for_ever, {}, cancel});
  if (result.ok()) {
    EXPECT_EQ(result->status, RunStatus::cancelled);
    expect_at_rest(run, result->report.steps);
  } else {  // the wish came before there was a run to end
    expect_refused(result.status(), Reason::cancelled, {});
    expect_at_rest(run, 0);
  }
}

TEST_P(Stopping, ARunEndsAtItsTimeoutWithWhatItHas) {
  const Endless run = endless();
  const StatusOr<RunResult> result = session().simulate(run.model(), {for_ever, milliseconds(50), {}});
  if (result.ok()) {
    EXPECT_EQ(result->status, RunStatus::deadline);
    expect_at_rest(run, result->report.steps);
  } else {  // on a busy machine the time may be over before the run has begun
    expect_refused(result.status(), Reason::deadline, {});
    expect_at_rest(run, 0);
  }
  expect_works();
}

TEST_P(Stopping, AnUnneededTimeoutChangesNothing) {
  const Endless run = endless();
  const RunResult result = must(session().simulate(run.model(), {10, milliseconds(60'000), {}}));
  EXPECT_EQ(result.status, RunStatus::max_steps);
  EXPECT_EQ(result.report.steps, 10);
}

TEST_P(Stopping, ALaunchEndsWhenItIsCancelledAndTheGraphStaysLaunchable) {
  if (GetParam().has("copied")) GTEST_SKIP() << "it looks at the arrays while they change";
  const auto x = zeros<double>({8});
  Graph g(session());
  ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", x}, {"a", 1.0}, {"b", 1.0}}}).ok());
  ASSERT_TRUE(g.build().ok());
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  std::jthread canceller([&] {
    while (std::atomic_ref<double>(x[0]).load() == 0) std::this_thread::yield();
    *cancel = true;
  });
  expect_refused(g.launch(for_ever, {{}, cancel}).status(), Reason::cancelled, {"launch"});
  const double so_far = x[0];
  EXPECT_GT(so_far, 0);
  ASSERT_TRUE(g.launch(3).ok());
  EXPECT_EQ(x[0], so_far + 3);
}

TEST_P(Stopping, ALaunchEndsAtItsTimeout) {
  const auto x = zeros<double>({8});
  Graph g(session());
  ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", x}, {"a", 1.0}, {"b", 1.0}}}).ok());
  ASSERT_TRUE(g.build().ok());
  expect_refused(g.launch(for_ever, {milliseconds(50), {}}).status(), Reason::deadline, {"launch"});
  EXPECT_TRUE(g.launch().ok());
}

TEST_P(Stopping, ALaunchOfHostNodesEndsToo) {
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  std::int64_t runs = 0;
  Graph g(session());
  ASSERT_TRUE(g.add_node(opaque(
                             [&] {
                               if (++runs == 5) *cancel = true;
                               return Status();
                             },
                             {}))
                  .ok());
  ASSERT_TRUE(g.build().ok());
  expect_refused(g.launch(for_ever, {{}, cancel}).status(), Reason::cancelled, {"launch"});
  EXPECT_GE(runs, 5);
  EXPECT_EQ(must(g.launch(2)).launches, 2);
}

TEST_P(Stopping, ClosingTheSessionEndsWhatRunsInIt) {
  if (GetParam().has("copied")) GTEST_SKIP() << "it looks at the arrays while they change";
  const Endless run = endless();
  std::jthread closer([&] {
    wait_for_steps(run);
    EXPECT_TRUE(session().close().ok());
  });
  expect_refused(session().simulate(run.model(), {for_ever, {}, {}}).status(), Reason::session_closed,
                 {"simulate"});
}

}  // namespace
}  // namespace eagle::conformance
