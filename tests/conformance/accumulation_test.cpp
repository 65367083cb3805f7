// What samples make together: reduce nodes, kernels with reductions and accumulators.
#include <bit>
#include <cmath>
#include <limits>

#include "eagle/client/kernel_builder.h"
#include "engine/run/reduction/golden_sums.h"
#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

using kernel::KernelBuilder;
using kernel::Scalar;
using kernel::Type;

class Accumulation : public OnEveryHost {
protected:
  static void build_and_launch(Graph& g, std::int64_t n = 1) {
    const Status built = g.build();
    ASSERT_TRUE(built.ok()) << built.to_string();
    const auto report = g.launch(n);
    ASSERT_TRUE(report.ok()) << report.status().to_string();
  }
  static std::shared_ptr<const Kernel> made(KernelBuilder& builder) {
    return std::make_shared<const Kernel>(must(builder.finish()));
  }
};
EAGLE_ON_EVERY_HOST(Accumulation);

TEST_P(Accumulation, ReduceGivesTheGoldenSums) {
  for (const run::GoldenSum& golden : run::golden_sums) {
    SCOPED_TRACE(golden.n);
    const std::vector<double> samples = run::golden_samples(golden.n);
    const auto x = must(session().copy<double>(samples));
    const auto y = must(session().copy<float>(std::vector<float>(samples.begin(), samples.end())));
    const auto plain = zeros<double>({1}), compensated = zeros<double>({1});
    const auto narrow = zeros<float>({1}), narrow_compensated = zeros<float>({1});
    Graph g(session());
    ASSERT_TRUE(g.add_node(reduce(x, plain)).ok());
    ASSERT_TRUE(g.add_node(reduce(x, compensated, {.compensated = true})).ok());
    ASSERT_TRUE(g.add_node(reduce(y, narrow)).ok());
    ASSERT_TRUE(g.add_node(reduce(y, narrow_compensated, {.compensated = true})).ok());
    build_and_launch(g);
    EXPECT_EQ(plain[0], golden.f64);
    EXPECT_EQ(compensated[0], golden.f64_compensated);
    EXPECT_EQ(narrow[0], golden.f32);
    EXPECT_EQ(narrow_compensated[0], golden.f32_compensated);
  }
}

TEST_P(Accumulation, ReduceNodesStandInGroupsConditionalsAndPictures) {
  const auto x = full<double>(1000, 0.5);
  const auto low = zeros<double>({1}), high = zeros<double>({1}), sum = zeros<double>({1});
  const auto flag = full<std::int64_t>(1, 1);
  Graph g(session());
  ASSERT_TRUE(g.add_group({{{{"", reduce(x, low, {.op = ReduceOp::min})}}},
                           {{{"high", reduce(x, high, {.op = ReduceOp::max})}}}})
                  .ok());
  ASSERT_TRUE(g.add_node(skippable({{"", reduce(x, sum)}}, {{"flag", flag}, std::nullopt, false})).ok());
  ASSERT_TRUE(g.build().ok());
  EXPECT_THAT(g.schedule(), ::testing::Each(on_gpu() ? "cuda_graph" : "work_share"));
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(low[0], 0.5);
  EXPECT_EQ(high[0], 0.5);
  EXPECT_EQ(sum[0], 500.0);
  flag[0] = 0;
  x[0] = 100;
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(high[0], 100.0);
  EXPECT_EQ(sum[0], 500.0);
  EXPECT_THAT(must(g.show()), ::testing::HasSubstr("│ reduce"));
  EXPECT_EQ(must(g.host_picture()), must(g.show()));
}

TEST_P(Accumulation, ReduceIsRefusedByTheNameOfTheArgument) {
  const auto x = full<double>(8, 1.0);
  const auto out = zeros<std::int64_t>({1});
  Graph g(session());
  Status status = g.add_node(reduce(x, out));
  if (status.ok()) status = g.build();
  expect_refused(status, Reason::wrong_dtype, {"'reduce'", "out: expected float64"});
}

// A kernel's reduction is the reduction of what an output would hold, with the neutral element where a sample
// is finished.
TEST_P(Accumulation, AKernelsReductionIsThatOfItsValues) {
  KernelBuilder k("energies");
  const auto x = k.scalar("x");
  k.terminated("done");
  k.declare_reduction("total", Type{}, ReduceOp::sum);
  k.declare_reduction("least", Type{}, ReduceOp::min);
  k.declare_reduction("positive", Type{Scalar::boolean}, ReduceOp::all);
  k.commit("total", k.mul(x, x));
  k.commit("least", x);
  k.commit("positive", k.gt(x, k.real(0)));
  k.commit("done", k.boolean(false));
  const auto kernel = made(k);
  for (const std::int64_t n : {1, 7, 255, 256, 257, 10'000, 100'003}) {
    SCOPED_TRACE(n);
    const auto samples = run::golden_samples(n);
    const auto x_plane = must(session().copy<double>(samples));
    const auto done = zeros<bool>({n});
    const auto squares = full<double>(n, -0.0);
    for (std::int64_t i = 0; i < n; ++i) {
      done[i] = i % 5 == 3;
      if (!done[i]) squares[i] = x_plane[i] * x_plane[i];
    }
    const auto total = full<double>(1, 7.0), least = full<double>(1, 7.0), expected = zeros<double>({1});
    const auto positive = zeros<bool>({1});
    Graph g(session());
    ASSERT_TRUE(
        g.add({kernel,
               {{"x", x_plane}, {"done", done}, {"total", total}, {"least", least}, {"positive", positive}}})
            .ok());
    ASSERT_TRUE(g.add_node(reduce(squares, expected)).ok());
    build_and_launch(g);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(total[0]), std::bit_cast<std::uint64_t>(expected[0]));
    double smallest = std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < n; ++i) smallest = done[i] ? smallest : std::min(smallest, x_plane[i]);
    EXPECT_EQ(least[0], smallest);
    EXPECT_EQ(positive[0], smallest > 0);
  }
}

TEST_P(Accumulation, AnAccumulatorAddsInTheOrderOfSamples) {
  KernelBuilder k("deposit");
  const auto x = k.scalar("x");
  const auto cell = k.index("cell");
  k.accumulator("h", Type{});
  k.accum_add("h", x, {cell});
  const auto kernel = made(k);
  constexpr std::int64_t n = 200'001;
  const auto samples = run::golden_samples(n);
  const auto x_plane = must(session().copy<double>(samples));
  for (const std::int64_t cells : {1, 10, 50'000}) {
    const auto keys = zeros<std::int64_t>({n});
    const auto h = full<double>(cells, 0.25);
    std::vector<double> expected(static_cast<std::size_t>(cells), 0.25);
    std::int64_t outside = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      keys[i] = (i * 7919) % (cells + 1) - (i % 1000 == 0 ? 1 : 0);
      if (keys[i] < 0 || keys[i] >= cells) {
        ++outside;
      } else {
        expected[static_cast<std::size_t>(keys[i])] += samples[static_cast<std::size_t>(i)];
      }
    }
    Graph g(session());
    ASSERT_TRUE(g.add({kernel, {{"x", x_plane}, {"cell", keys}, {"h", h}}}).ok());
    ASSERT_TRUE(g.build().ok());
    const auto report = must(g.launch());
    EXPECT_EQ(report.counts.dropped, outside);
    EXPECT_THAT(h.span(), ::testing::ElementsAreArray(expected));
  }
}

// All samples take a step before any takes the next: the additions of step 2 come after all of step 1.
TEST_P(Accumulation, ASimulationAddsAndReducesStepByStep) {
  KernelBuilder k("decay");
  const auto x = k.state("x", {});
  const auto steps = k.scalar("steps");
  k.terminated("done");
  k.accumulator("history", Type{});
  k.declare_reduction("total", Type{}, ReduceOp::sum);
  const auto next = k.mul(x, k.real(0.5));
  k.accum_add("history", next, {k.step_index()});
  k.commit("x", next);
  k.commit("total", next);
  k.commit("done", k.ge(k.add(k.convert(k.step_index(), Scalar::f64), k.real(1)), steps));
  const auto kernel = made(k);
  constexpr std::int64_t n = 5000;
  const auto x_plane = full<double>(n, 1.0);
  const auto wanted = zeros<double>({n});
  for (std::int64_t i = 0; i < n; ++i) wanted[i] = 1.0 + static_cast<double>(i % 4);
  const auto done = zeros<bool>({n});
  const auto history = zeros<double>({6});
  const auto total = zeros<double>({1});
  const auto result = must(session().simulate(
      {kernel, {{"x", x_plane}, {"steps", wanted}, {"done", done}, {"history", history}, {"total", total}}},
      {100, {}, {}}));
  EXPECT_EQ(result.report.steps, 4);
  EXPECT_EQ(result.report.finished, n);
  // 5000 samples halve, then 3750, 2500 and 1250 of them again; nobody adds to the last two cells.
  EXPECT_THAT(history.span(), ::testing::ElementsAre(2500.0, 937.5, 312.5, 78.125, 0.0, 0.0));
  EXPECT_EQ(total[0], 78.125);
}

}  // namespace
}  // namespace eagle::conformance
