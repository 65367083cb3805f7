// Kernels in graphs: values, edges of the sample range, in place updates.
#include <limits>
#include <numeric>

#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

class Kernels : public OnEveryHost {};
EAGLE_ON_EVERY_HOST(Kernels);

// Around the lanes of a vector, around a cache line, and none at all.
constexpr std::int64_t sizes[] = {0, 1, 7, 8, 9, 63, 64, 65, 1000};

TEST_P(Kernels, AffineGivesItsValuesForAnyNumberOfSamplesAndNoMore) {
  for (const std::int64_t n : sizes) {
    SCOPED_TRACE(n);
    const auto x = zeros<double>({n});
    std::iota(x.span().begin(), x.span().end(), 0.0);
    // y lies in the middle of a larger array, off its alignment; what is around it must stay.
    constexpr double untouched = -7;
    const auto around = full<double>(n + 2, untouched);
    ArrayView y = around;
    y.data = around.span().data() + 1;
    y.shape = {n};
    Graph g(session());
    ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", y}, {"a", 2.0}, {"b", 1.0}}}).ok());
    const Status built = g.build();
    ASSERT_TRUE(built.ok()) << built.to_string();
    ASSERT_TRUE(g.launch().ok());
    EXPECT_EQ(around[0], untouched);
    EXPECT_EQ(around[n + 1], untouched);
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(around[i + 1], 2.0 * static_cast<double>(i) + 1.0) << i;
  }
}

TEST_P(Kernels, AnInPlaceUpdateReadsWhatWasThereAtLaunch) {
  const auto x = full<double>(65, 1.0);
  Graph g(session());
  ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", x}, {"a", 2.0}, {"b", 1.0}}}).ok());
  ASSERT_TRUE(g.build().ok());
  const auto report = must(g.launch(10));
  EXPECT_EQ(report.launches, 10);
  // x -> 2x + 1, ten times from 1: 2^11 - 1.
  for (const double value : x.span()) ASSERT_EQ(value, 2047.0);
}

TEST_P(Kernels, SpecialValuesGoThroughUnchanged) {
  const double inf = std::numeric_limits<double>::infinity();
  const double tiny = std::numeric_limits<double>::denorm_min();
  const std::vector<double> values = {inf, -inf, tiny, -0.0, std::numeric_limits<double>::max()};
  const auto x = must(session().copy<double>(values));
  const auto y = zeros<double>({5});
  Graph g(session());
  ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", y}, {"a", 1.0}, {"b", -0.0}}}).ok());
  ASSERT_TRUE(g.build().ok());
  ASSERT_TRUE(g.launch().ok());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(y[static_cast<std::int64_t>(i)]),
              std::bit_cast<std::uint64_t>(values[i]));
  }
}

TEST_P(Kernels, RunInTheProcessThatTheReportNames) {
  const auto x = full<double>(8, 1.0);
  Graph g(session());
  ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", x}, {"a", 2.0}, {"b", 1.0}}}).ok());
  ASSERT_TRUE(g.build().ok());
  const auto report = must(g.launch());
  EXPECT_EQ(report.host.pid, must(session().info()).host.pid);
  EXPECT_EQ(report.host.pid == ::getpid(), !remote());
  EXPECT_GE(report.threads, 1);
}

TEST_P(Kernels, PrivateArraysWorkWhereTheKernelRunsInThisProcessAndAreRefusedByNameElsewhere) {
  std::vector<double> mine(8, 3.0);
  const auto y = zeros<double>({8});
  const ArrayView x{mine.data(), DType::f64, 8, {8}, {8}, false, nullptr};
  Graph g(session());
  const Status added = g.add({affine(), {{"x", x}, {"y", y}, {"a", 2.0}, {"b", 1.0}}}, "mine");
  if (remote()) {
    expect_refused(added, Reason::private_array, {"'mine'", "'x'"});
    return expect_works();
  }
  ASSERT_TRUE(added.ok()) << added.to_string();
  ASSERT_TRUE(g.build().ok());
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(y[7], 7.0);
}

}  // namespace
}  // namespace eagle::conformance
