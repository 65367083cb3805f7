// Stepping: a model until its samples have finished. Compared with a plain loop, bit for bit.
#include <cmath>
#include <limits>

#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

// The ensemble in a session's memory.
struct Planes {
  Array<double> x, v, t, omega;
  Array<bool> done;
};

class Simulate : public OnEveryHost {
protected:
  [[nodiscard]] Planes planes_of(const Ensemble& ensemble) const {
    const auto copy = [this](const std::vector<double>& values) {
      return must(session().copy<double>(values));
    };
    Planes planes{copy(ensemble.x), copy(ensemble.v), copy(ensemble.t), copy(ensemble.omega),
                  zeros<bool>({static_cast<std::int64_t>(ensemble.x.size())})};
    for (std::size_t i = 0; i < ensemble.done.size(); ++i) {
      planes.done[static_cast<std::int64_t>(i)] = ensemble.done[i] != 0;
    }
    return planes;
  }
  [[nodiscard]] RunResult run(const Planes& planes, double dt, double t_end, std::int64_t max_steps) const {
    const BoundPlan model{oscillator(),
                          {{"x", planes.x},
                           {"v", planes.v},
                           {"t", planes.t},
                           {"omega", planes.omega},
                           {"dt", dt},
                           {"t_end", t_end},
                           {"done", planes.done}}};
    return must(session().simulate(model, {max_steps, {}, {}}));
  }
  static void expect_equal(const Planes& planes, const Ensemble& expected) {
    for (std::size_t s = 0; s < expected.x.size(); ++s) {
      const auto i = static_cast<std::int64_t>(s);
      ASSERT_EQ(planes.x[i], expected.x[s]) << "sample " << i;
      ASSERT_EQ(planes.v[i], expected.v[s]) << "sample " << i;
      ASSERT_EQ(planes.t[i], expected.t[s]) << "sample " << i;
      ASSERT_EQ(planes.done[i], expected.done[s] != 0) << "sample " << i;
    }
  }
};
EAGLE_ON_EVERY_HOST(Simulate);

TEST_P(Simulate, GivesTheBitsOfAPlainLoop) {
  for (const std::int64_t n : {1, 7, 64, 1003}) {
    SCOPED_TRACE(n);
    Ensemble expected = Ensemble::spread(n);
    const Planes planes = planes_of(expected);
    const RunResult result = run(planes, 1e-3, 1.0, 2000);
    const EnsembleRun loop = step(expected, 1e-3, 1.0, 2000);
    EXPECT_EQ(result.status, RunStatus::finished);
    EXPECT_EQ(result.report.steps, loop.steps);
    EXPECT_EQ(result.report.finished, n);
    EXPECT_EQ(result.report.samples, n);
    EXPECT_EQ(result.report.kernels.size(), 1u);
    expect_equal(planes, expected);
  }
}

TEST_P(Simulate, OneOscillatorEndsWhereItWasMeasuredToEnd) {
  // docs/manual/kernels.md: omega = 2, dt = 1e-3, t_end = 1.
  const Planes planes = planes_of({{1.0}, {0.0}, {0.0}, {2.0}, {0}});
  const RunResult result = run(planes, 1e-3, 1.0, 2000);
  EXPECT_EQ(result.report.steps, 1000);
  EXPECT_EQ(planes.t[0], 1.0000000000000007);
  EXPECT_EQ(planes.x[0], -0.41697753175791447);
  EXPECT_EQ(planes.v[0], -1.8222378995667639);
}

TEST_P(Simulate, TheCapIsExact) {
  for (const std::int64_t cap : {1, 37, 999}) {
    SCOPED_TRACE(cap);
    Ensemble expected = {{1.0, 1.0, 1.0}, {0, 0, 0}, {0, 0, 0}, {1.0, 2.0, 3.0}, {0, 0, 0}};
    const Planes planes = planes_of(expected);
    const RunResult result = run(planes, 1e-3, 1.0, cap);
    step(expected, 1e-3, 1.0, cap);
    EXPECT_EQ(result.status, RunStatus::max_steps);
    EXPECT_EQ(result.report.steps, cap);
    EXPECT_EQ(result.report.finished, 0);
    expect_equal(planes, expected);
  }
}

TEST_P(Simulate, ARunInPiecesIsTheRunInOne) {
  Ensemble expected = Ensemble::spread(200);
  const Planes planes = planes_of(expected);
  std::int64_t finished = 0;
  for (const std::int64_t cap : {37, 900, 2000}) finished += run(planes, 1e-3, 1.0, cap).report.finished;
  step(expected, 1e-3, 1.0, 2000);
  EXPECT_EQ(finished, 200);
  expect_equal(planes, expected);
}

TEST_P(Simulate, SamplesThatHadFinishedBeforeAreNeitherTouchedNorCounted) {
  Ensemble expected = Ensemble::spread(100);
  for (std::size_t i = 0; i < 100; i += 3) expected.done[i] = 1;
  const Planes planes = planes_of(expected);
  const RunResult result = run(planes, 1e-3, 1.0, 2000);
  const EnsembleRun loop = step(expected, 1e-3, 1.0, 2000);
  EXPECT_EQ(result.status, RunStatus::finished);
  EXPECT_EQ(result.report.finished, 66);
  EXPECT_EQ(result.report.steps, loop.steps);
  expect_equal(planes, expected);
}

TEST_P(Simulate, WhereAllHaveFinishedNothingRuns) {
  const Planes planes = planes_of(Ensemble::spread(64));
  ASSERT_EQ(run(planes, 1e-3, 1.0, 2000).status, RunStatus::finished);
  const RunResult again = run(planes, 1e-3, 1.0, 2000);
  EXPECT_EQ(again.status, RunStatus::finished);
  EXPECT_EQ(again.report.steps, 0);
  EXPECT_EQ(again.report.launches, 0);
  EXPECT_EQ(again.report.finished, 0);
}

TEST_P(Simulate, NoSamplesHaveAllFinished) {
  const Planes planes = planes_of(Ensemble::spread(0));
  const RunResult result = run(planes, 1e-3, 1.0, 2000);
  EXPECT_EQ(result.status, RunStatus::finished);
  EXPECT_EQ(result.report.steps, 0);
  EXPECT_EQ(result.report.samples, 0);
}

TEST_P(Simulate, NoStepsAllowedAreNoStepsTaken) {
  const Planes planes = planes_of(Ensemble::spread(8));
  const RunResult result = run(planes, 1e-3, 1.0, 0);
  EXPECT_EQ(result.status, RunStatus::max_steps);
  EXPECT_EQ(result.report.steps, 0);
  EXPECT_EQ(planes.x[7], 1.0);
}

TEST_P(Simulate, ANaNNeverReachesItsEnd) {
  Ensemble start = Ensemble::spread(16);
  start.t[5] = std::numeric_limits<double>::quiet_NaN();
  const Planes planes = planes_of(start);
  const RunResult result = run(planes, 1e-3, 1.0, 1500);
  EXPECT_EQ(result.status, RunStatus::max_steps);
  EXPECT_EQ(result.report.finished, 15);
  EXPECT_EQ(result.report.steps, 1500);
  EXPECT_FALSE(planes.done[5]);
  EXPECT_TRUE(std::isnan(planes.t[5]));
  EXPECT_TRUE(planes.done[4] && planes.done[6]);
}

TEST_P(Simulate, TheSecondRunOfAModelComesFromTheCache) {
  const Planes planes = planes_of(Ensemble::spread(8));
  EXPECT_EQ(run(planes, 1e-3, 1.0, 1).report.steps, 1);
  EXPECT_FALSE(run(planes, 1e-3, 1.0, 1).report.compiled);
}

TEST_P(Simulate, ANegativeCapIsRefused) {
  const auto n = zeros<double>({8});
  const auto done = zeros<bool>({8});
  const BoundPlan model{counter(), {{"n", n}, {"limit", 3.0}, {"done", done}}};
  expect_refused(session().simulate(model, {-1, {}, {}}).status(), Reason::bad_value, {"max_steps", "-1"});
  EXPECT_EQ(must(session().simulate(model, {10, {}, {}})).report.steps, 3);
}

}  // namespace
}  // namespace eagle::conformance
