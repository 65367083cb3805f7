// The kernel language beyond straight lines: loops, switches, tables, integers; and what it counts instead of
// failing.
#include <cmath>
#include <memory>
#include <numeric>
#include <thread>

#include "engine/kernel/algebra.h"
#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

using kernel::KernelBuilder;
using kernel::Opcode;
using kernel::Scalar;
using kernel::Type;
using Value = KernelBuilder::Value;

class Language : public OnEveryHost {
protected:
  static std::shared_ptr<const Kernel> finished(KernelBuilder& builder) {
    return std::make_shared<const Kernel>(must(builder.finish()));
  }
  LaunchReport run(const BoundPlan& plan) const {
    Graph g(session());
    const Status added = g.add(plan);
    EXPECT_TRUE(added.ok()) << added.to_string();
    const Status built = g.build();
    EXPECT_TRUE(built.ok()) << built.to_string();
    return must(g.launch());
  }
  [[nodiscard]] Array<std::int64_t> integers(std::vector<std::int64_t> values) const {
    return must(session().copy<std::int64_t>(values));
  }
};
EAGLE_ON_EVERY_HOST(Language);

// sum of 1..n, each sample with its own n, so that lanes leave the loop at different trips.
TEST_P(Language, LoopsEndWhereEachSampleEnds) {
  KernelBuilder b("triangle");
  const Value n = b.index("n");
  auto carried = b.begin_while({b.integer(0), b.integer(0)}, 1000);
  carried = b.while_condition(b.lt(carried[0], n));
  const Value next = b.add(carried[0], b.integer(1));
  carried = b.end_while({next, b.add(carried[1], next)});
  b.output("sum", carried[1]);
  std::vector<std::int64_t> ends(100);
  std::iota(ends.begin(), ends.end(), -3);  // some of none at all
  const auto sum = zeros<std::int64_t>({100});
  run({finished(b), {{"n", integers(ends)}, {"sum", sum}}});
  for (std::int64_t i = 0; i < 100; ++i) {
    const std::int64_t end = std::max<std::int64_t>(ends[static_cast<std::size_t>(i)], 0);
    ASSERT_EQ(sum[i], end * (end + 1) / 2) << i;
  }
}

TEST_P(Language, ALoopWithoutEndStopsAtItsCap) {
  KernelBuilder b("endless");
  const Value x = b.state("x", {});
  auto carried = b.begin_while({x}, 10);
  carried = b.while_condition(b.boolean(true));
  carried = b.end_while({b.add(carried[0], b.real(1.0))});
  b.commit("x", carried[0]);
  const auto x_array = full<double>(65, 0.0);
  run({finished(b), {{"x", x_array}}});
  for (const double value : x_array.span()) ASSERT_EQ(value, 10.0);
}

// docs/manual/kernels.md, acceptance kernel "gather": table 3i at (7i+3) mod 8.
TEST_P(Language, TablesAreReadAtAnyIndex) {
  KernelBuilder b("gather");
  b.table("table", {});
  const Value i = b.sample_index();
  const Value at = b.op(Opcode::modulo, {b.add(b.mul(b.integer(7), i), b.integer(3)), b.integer(8)});
  b.output("y", b.gather("table", {at}));
  const auto table = must(session().copy<double>(std::vector<double>{0, 3, 6, 9, 12, 15, 18, 21}));
  const auto y = zeros<double>({8});
  const LaunchReport report = run({finished(b), {{"table", table}, {"y", y}}});
  EXPECT_THAT(y.span(), ::testing::ElementsAre(9, 6, 3, 0, 21, 18, 15, 12));
  EXPECT_EQ(report.counts.clamped, 0);
}

TEST_P(Language, AnIndexOutsideATableIsClampedAndCounted) {
  KernelBuilder b("clamped");
  b.table("table", {});
  b.output("y", b.gather("table", {b.index("i")}));
  const auto table = must(session().copy<double>(std::vector<double>{1, 2, 4}));
  const auto y = zeros<double>({5});
  const std::int64_t far = std::numeric_limits<std::int64_t>::max();
  const LaunchReport report =
      run({finished(b), {{"table", table}, {"i", integers({-1, 0, 2, 3, far})}, {"y", y}}});
  EXPECT_THAT(y.span(), ::testing::ElementsAre(1, 1, 4, 4, 4));
  EXPECT_EQ(report.counts.clamped, 3);
}

TEST_P(Language, ATableWithAxesTakesOneIndexForEach) {
  KernelBuilder b("axes");
  b.table("table", {}, {{"row", 2}, {"column", 3}});
  const Value i = b.index("i");
  const Value j = b.index("j");
  b.output("y", b.gather("table", {i, j}));
  const auto kernel = finished(b);
  const auto flat = must(session().copy<double>(std::vector<double>{0, 1, 2, 10, 11, 12}));
  ArrayView matrix = flat.view();
  matrix.shape = {2, 3};
  matrix.strides = {24, 8};
  for (const ArrayView& table : {flat.view(), matrix}) {
    const auto y = zeros<double>({3});
    run({kernel, {{"table", table}, {"i", integers({0, 1, 1})}, {"j", integers({2, 0, 2})}, {"y", y}}});
    EXPECT_THAT(y.span(), ::testing::ElementsAre(2, 10, 12));
  }
}

TEST_P(Language, TablesThatCannotBeOneAreRefusedByName) {
  const auto kernel_with = [](std::vector<kernel::Axis> axes) {
    KernelBuilder b("lookup");
    b.table("table", {}, std::move(axes));
    b.output("y", b.gather("table", {b.integer(0)}));
    return std::make_shared<const Kernel>(must(b.finish()));
  };
  const auto y = zeros<double>({4});
  Graph g(session());
  const auto empty = zeros<double>({0});
  expect_refused(g.add({kernel_with({}), {{"table", empty}, {"y", y}}}), Reason::bad_value,
                 {"'table'", "at least one element"});
  const auto five = zeros<double>({5});
  expect_refused(g.add({kernel_with({{"row", 6}}), {{"table", five}, {"y", y}}}), Reason::wrong_shape,
                 {"'table'", "row: 6", "5"});
  // What is written while others read it at any index would depend on their order.
  expect_refused(g.add({kernel_with({}), {{"table", y}, {"y", y}}}), Reason::plane_overlap,
                 {"'table'", "'y'"});
  expect_works();
}

TEST_P(Language, DividingAnIntegerByZeroGivesZeroAndIsCounted) {
  KernelBuilder b("divide");
  const Value a = b.index("a");
  const Value d = b.index("d");
  b.output("quotient", b.op(Opcode::floor_div, {a, d}));
  b.output("remainder", b.op(Opcode::modulo, {a, d}));
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const auto quotient = zeros<std::int64_t>({6});
  const auto remainder = zeros<std::int64_t>({6});
  const LaunchReport report = run({finished(b),
                                   {{"a", integers({7, -7, 7, 5, least, least})},
                                    {"d", integers({2, 2, -2, 0, -1, 0})},
                                    {"quotient", quotient},
                                    {"remainder", remainder}}});
  // As Python has it; by zero 0; MIN // -1 is MIN and MIN % -1 is 0.
  EXPECT_THAT(quotient.span(), ::testing::ElementsAre(3, -4, -4, 0, least, 0));
  EXPECT_THAT(remainder.span(), ::testing::ElementsAre(1, 1, -1, 0, 0, 0));
  EXPECT_EQ(report.counts.zero_divisions, 4);
}

TEST_P(Language, ASwitchClampsItsSelectorAndRunsOneCase) {
  KernelBuilder b("cases");
  const Value which = b.index("which");
  b.begin_switch(which);
  b.next_case({b.real(10.0)});
  b.next_case({b.real(20.0)});
  b.output("y", b.end_switch({b.real(30.0)})[0]);
  const auto y = zeros<double>({6});
  run({finished(b), {{"which", integers({-5, 0, 1, 2, 3, 99})}, {"y", y}}});
  EXPECT_THAT(y.span(), ::testing::ElementsAre(10, 10, 20, 30, 30, 30));
}

// docs/manual/kernels.md, acceptance kernel "energy": |v|^2 / 2.
TEST_P(Language, VectorsAreComponentMajor) {
  KernelBuilder b("energy");
  const Value v = b.vector("v", 3);
  b.output("e", b.mul(b.real(0.5), kernel::algebra::dot(b, v, v)));
  const auto planes = zeros<double>({3, 4});
  const double values[3][4] = {{1, 2, 3, 4}, {0, 1, 0, 1}, {0, 0, 1, 1}};
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t i = 0; i < 4; ++i) planes[c * 4 + i] = values[c][i];
  }
  const auto e = zeros<double>({4});
  run({finished(b), {{"v", planes}, {"e", e}}});
  EXPECT_THAT(e.span(), ::testing::ElementsAre(0.5, 2.5, 5.0, 9.0));
}

// A loop of days inside one kernel: the flag is looked at inside, and the step that it cut short is not
// there.
TEST_P(Language, CancelReachesInsideALoopAndLeavesWholeSteps) {
  const auto x_array = full<double>(100, 1.0);
  const auto done = full<bool>(100, false);
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  std::jthread canceller([cancel] { *cancel = true; });
  const RunResult result =
      must(session().simulate({days(), {{"x", x_array}, {"done", done}}}, {1000, {}, cancel}));
  EXPECT_EQ(result.status, RunStatus::cancelled);
  EXPECT_EQ(result.report.steps, 0);
  for (const double value : x_array.span()) ASSERT_EQ(value, 1.0);
  expect_works();
}

// The last node of the last replay too: a launch that was cut short is no success.
TEST_P(Language, ALaunchThatIsCancelledInsideALoopSaysSo) {
  KernelBuilder b("days");
  const Value x = b.state("x", {Scalar::i64});
  auto carried = b.begin_while({b.integer(0)}, std::uint64_t{1} << 40);
  carried = b.while_condition(b.ge(carried[0], b.integer(0)));
  carried = b.end_while({b.add(carried[0], b.integer(1))});
  b.commit("x", b.add(x, carried[0]));
  const auto x_array = full<std::int64_t>(100, 7);
  Graph g(session());
  ASSERT_TRUE(g.add({finished(b), {{"x", x_array}}}).ok());
  ASSERT_TRUE(g.build().ok());
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  std::jthread canceller([cancel] { *cancel = true; });
  expect_refused(g.launch(1, {{}, cancel}).status(), Reason::cancelled, {"0 of 1 replays"});
  for (const std::int64_t value : x_array.span()) ASSERT_EQ(value, 7);
  expect_works();
}

TEST_P(Language, StepsAreNumberedThroughARun) {
  KernelBuilder b("numbered");
  const Value sum = b.state("sum", {Scalar::i64});
  const Value t = b.state("t", {});
  b.terminated("done");
  const Value later = b.add(t, b.real(1.0));
  b.commit("sum", b.add(sum, b.step_index()));
  b.commit("t", later);
  b.commit("done", b.ge(later, b.real(100.0)));
  const auto sums = zeros<std::int64_t>({70});
  const auto times = full<double>(70, 0.0);
  const auto done = full<bool>(70, false);
  const RunResult result =
      must(session().simulate({finished(b), {{"sum", sums}, {"t", times}, {"done", done}}}, {1000, {}, {}}));
  EXPECT_EQ(result.report.steps, 100);
  for (const std::int64_t value : sums.span()) ASSERT_EQ(value, 99 * 100 / 2);  // 0 + 1 + ... + 99
}

}  // namespace
}  // namespace eagle::conformance
