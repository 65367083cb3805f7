// Stopping what runs: cancel, timeout, closing the session. State is at whole steps afterwards, nothing
// computes on the arrays any more, and the session goes on.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "eagle/client/stepping.h"
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
  // Every sample is at the whole step that the result says, the furthest at `steps`, and none moves any more.
  static void expect_at_rest(const Endless& run, const RunReport& report) {
    const std::vector<double> before(run.n.span().begin(), run.n.span().end());
    ASSERT_FALSE(report.ranges.empty());
    EXPECT_EQ(report.ranges.back().end, static_cast<std::int64_t>(before.size()));
    std::size_t i = 0;
    for (const step::StepRange& range : report.ranges) {
      for (; i < static_cast<std::size_t>(range.end); ++i)
        ASSERT_EQ(before[i], static_cast<double>(range.steps)) << "sample " << i;
    }
    EXPECT_EQ(*std::max_element(before.begin(), before.end()), static_cast<double>(report.steps));
    std::this_thread::yield();
    EXPECT_TRUE(std::equal(before.begin(), before.end(), run.n.span().begin()));
  }
};
EAGLE_ON_EVERY_HOST(Stopping);

// The timeout passed in the first step, of which nothing is left. Where the daemon was just asking the caller
// for its part, the run has no result.
void expect_undone(const StatusOr<RunResult>& result) {
  if (!result.ok()) return expect_refused(result.status(), Reason::deadline, {"part of step 1"});
  EXPECT_EQ(result->status, RunStatus::deadline);
  EXPECT_EQ(result->report.steps, 0);
  EXPECT_EQ(result->report.finished, 0);
}

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
  expect_at_rest(run, result.report);
  expect_works();
}

TEST_P(Stopping, ARunThatWasCancelledBeforeItBeganHasItsResultWithNoStep) {
  const Endless run = endless();
  const auto cancel = std::make_shared<std::atomic<bool>>(true);
  const RunResult result = must(session().simulate(run.model(), {for_ever, {}, cancel}));
  EXPECT_EQ(result.status, RunStatus::cancelled);
  EXPECT_EQ(result.report.samples, samples);
  EXPECT_EQ(result.report.steps, 0);
  EXPECT_EQ(result.report.kernels.size(), 1u);
  expect_at_rest(run, result.report);
}

TEST_P(Stopping, ARunOfWhichNothingIsLeftHasEndedWhateverTheCancelSays) {
  const Endless run = endless();
  std::fill(run.done.span().begin(), run.done.span().end(), true);
  const auto cancel = std::make_shared<std::atomic<bool>>(true);
  const RunResult result = must(session().simulate(run.model(), {for_ever, {}, cancel}));
  EXPECT_EQ(result.status, RunStatus::finished);
  EXPECT_EQ(result.report.steps, 0);
  EXPECT_TRUE(result.report.ranges.empty());
}

TEST_P(Stopping, ARunThatIsRefusedIsRefusedWhateverTheCancelSays) {
  const Endless run = endless();
  const auto cancel = std::make_shared<std::atomic<bool>>(true);
  const BoundPlan half{counter(), {{"n", run.n}, {"limit", 1.0}}};
  const StatusOr<RunResult> result = session().simulate(half, {for_ever, {}, cancel});
  expect_refused(result.status(), Reason::bad_binding, {"done"});
}

TEST_P(Stopping, ARunEndsAtItsTimeoutWithWhatItHas) {
  const Endless run = endless();
  const RunResult result = must(session().simulate(run.model(), {for_ever, milliseconds(50), {}}));
  EXPECT_EQ(result.status, RunStatus::deadline);  // on a busy machine it may not have begun
  expect_at_rest(run, result.report);
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

TEST_P(Stopping, WhatALaunchLeftHalfWrittenIsReadAgainOnceItIsAccepted) {
  const auto x = zeros<double>({8});
  bool fails = true;
  Graph g(session());
  ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", x}, {"a", 1.0}, {"b", 1.0}}}).ok());
  ASSERT_TRUE(
      g.add_node(opaque([&] { return fails ? Status(Reason::bad_value, "not now") : Status(); }, {})).ok());
  ASSERT_TRUE(g.build().ok());
  EXPECT_FALSE(g.launch().ok());
  fails = false;
  if (remote()) expect_refused(g.launch().status(), Reason::plane_torn, {"'x'", "accept"});
  EXPECT_EQ(x[0], 1.0);
  ASSERT_TRUE(session().accept(x).ok());
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(x[0], 2.0);
}

// A node that has done its part is counted, wherever the graph runs.
TEST_P(Stopping, ALaunchThatItsOwnNodeCancelsCountsThatReplay) {
  for (const std::int64_t at : {1, 3}) {
    const auto cancel = std::make_shared<std::atomic<bool>>(false);
    std::int64_t runs = 0;
    Graph g(session());
    ASSERT_TRUE(g.add_node(opaque(
                               [&] {
                                 if (++runs == at) *cancel = true;
                                 return Status();
                               },
                               {}))
                    .ok());
    ASSERT_TRUE(g.build().ok());
    const std::string whole = std::to_string(at) + " of 10 replays";
    expect_refused(g.launch(10, {{}, cancel}).status(), Reason::cancelled, {whole});
    EXPECT_EQ(runs, at);
  }
}

TEST_P(Stopping, ALaunchOfTwoNodesThatTheFirstCancelsIsLeftBetweenThem) {
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  std::int64_t runs = 0;
  const auto node = [&](bool stops) {
    return opaque(
        [&runs, stops, cancel] {
          ++runs;
          if (stops) *cancel = true;
          return Status();
        },
        {});
  };
  Graph g(session());
  ASSERT_TRUE(g.add_node(node(true)).ok());
  ASSERT_TRUE(g.add_node(node(false)).ok());
  ASSERT_TRUE(g.build().ok());
  expect_refused(g.launch(10, {{}, cancel}).status(), Reason::cancelled, {"0 of 10 replays"});
  EXPECT_EQ(runs, 1);
}

// What stops a run reaches into a loop of its kernel, whoever wants it, and leaves whole steps.
TEST_P(Stopping, ATimeoutReachesInsideALoop) {
  const auto x = full<double>(100, 1.0);
  const auto done = full<bool>(100, false);
  const RunResult result =
      must(session().simulate({days(), {{"x", x}, {"done", done}}}, {1000, milliseconds(30), {}}));
  EXPECT_EQ(result.status, RunStatus::deadline);
  for (const double value : x.span()) ASSERT_EQ(value, 1.0);
  expect_works();
}

TEST_P(Stopping, ATimeoutReachesInsideALoopOfALaunch) {
  const auto x = full<double>(100, 1.0);
  const auto done = full<bool>(100, false);
  Graph g(session());
  ASSERT_TRUE(g.add({days(), {{"x", x}, {"done", done}}}).ok());
  ASSERT_TRUE(g.build().ok());
  expect_refused(g.launch(1, {milliseconds(30), {}}).status(), Reason::deadline, {"launch"});
  for (const double value : x.span()) ASSERT_EQ(value, 1.0);
  expect_works();
}

TEST_P(Stopping, ClosingTheSessionReachesInsideALoopOfALaunchThatHasACancelOfItsOwn) {
  const auto x = full<double>(100, 1.0);
  const auto done = full<bool>(100, false);
  Graph g(session());
  ASSERT_TRUE(g.add({days(), {{"x", x}, {"done", done}}}).ok());
  ASSERT_TRUE(g.build().ok());
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  std::jthread closer([&] { EXPECT_TRUE(session().close().ok()); });
  expect_refused(g.launch(1, {{}, cancel}).status(), Reason::session_closed, {});
  EXPECT_FALSE(*cancel) << "it is the caller's";
}

// The caller has a part in each step, and the rest of the step would take days.
TEST_P(Stopping, ATimeoutReachesInsideALoopOfARunWithACallable) {
  const auto x = full<double>(100, 1.0);
  const auto done = full<bool>(100, false);
  std::int64_t calls = 0;
  const std::vector<ModelStep> model = {opaque(
                                            [&] {
                                              ++calls;
                                              return Status();
                                            },
                                            {}),
                                        BoundPlan{days(), {{"x", x}, {"done", done}}}};
  const StatusOr<RunResult> result = simulate(session(), model, {1000, milliseconds(30), {}});
  expect_undone(result);
  EXPECT_LE(calls, 1);
  for (const double value : x.span()) ASSERT_EQ(value, 1.0);
  expect_works();
}

// Half of the samples finish in the first kernel of a step that the second never ends.
TEST_P(Stopping, SamplesOfAStepThatWasUndoneHaveNotFinished) {
  const auto n = full<double>(100, 0.0);
  for (std::int64_t i = 0; i < 50; ++i) n[i] = 9.0;
  const auto x = full<double>(100, 1.0);
  const auto done = full<bool>(100, false);
  const std::vector<ModelStep> model = {opaque([] { return Status(); }, {}),
                                        BoundPlan{counter(), {{"n", n}, {"limit", 10.0}, {"done", done}}},
                                        BoundPlan{days(), {{"x", x}, {"done", done}}}};
  const StatusOr<RunResult> result = simulate(session(), model, {1000, milliseconds(30), {}});
  expect_undone(result);
  for (const bool finished : done.span()) ASSERT_FALSE(finished);
  EXPECT_EQ(n[0], 9.0);
}

TEST_P(Stopping, ClosingTheSessionReachesInsideALoopOfARunThatHasACancelOfItsOwn) {
  const auto x = full<double>(100, 1.0);
  const auto done = full<bool>(100, false);
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  std::jthread closer([&] { EXPECT_TRUE(session().close().ok()); });
  expect_refused(session().simulate({days(), {{"x", x}, {"done", done}}}, {1000, {}, cancel}).status(),
                 Reason::session_closed, {});
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
