// What the arguments of one launch must have in common, for roles of every kind.
#include <gmock/gmock.h>

#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using plane::DType;
using plane::testing::array;
using plane::testing::slice;
using testing::Arguments;
using testing::Description;
using ::testing::HasSubstr;
using testing::View;

Status launched(Description d, std::uint32_t kernel, const Arguments& arguments) {
  return d.add(testing::launch("n", kernel, arguments)).try_read().status();
}

void expect_refused(const Status& status, Reason reason, const std::string& words) {
  EXPECT_EQ(info(status.reason()).wire_name, info(reason).wire_name) << status.message();
  EXPECT_THAT(status.message(), HasSubstr(words));
}

// y = t[i] of each sample i, which is added to a[i], too; r is the sum of x.
struct Shared {
  Description d;
  std::uint32_t kernel = [this] {
    kernel::KernelBuilder builder("shared");
    const auto each = builder.scalar("x");
    builder.table("t", {});
    builder.accumulator("a", {});
    builder.declare_reduction("r", {}, kernel::ReduceOp::sum);
    builder.declare_output("y", {});
    const auto i = builder.sample_index();
    const auto found = builder.gather("t", {i});
    builder.accum_add("a", found, {i});
    builder.commit("y", found);
    builder.commit("r", each);
    return d.kernel(builder);
  }();
  View x = d.array({8});
  View t = d.array({5});
  View a = d.array({3});
  View r = d.array({1, 1});
  View y = d.array({8});

  [[nodiscard]] Status launched() const {
    return graph::launched(d, kernel, {{"x", x}, {"t", t}, {"a", a}, {"r", r}, {"y", y}});
  }
};

TEST(LaunchRoles, TablesAccumulatorsAndReductionsHaveLengthsOfTheirOwn) {
  Shared scene;
  EXPECT_TRUE(scene.launched().ok()) << scene.launched().to_string();
  scene.r = scene.d.array({8});
  expect_refused(scene.launched(), Reason::wrong_shape, "argument 'r'");
}

TEST(LaunchRoles, ATableHasAnElementAndSamplesMayBeNone) {
  Shared scene;
  scene.x = scene.d.array({0});
  scene.y = scene.d.array({0});
  EXPECT_TRUE(scene.launched().ok()) << scene.launched().to_string();
  scene.t = scene.d.array({0});
  expect_refused(scene.launched(), Reason::bad_value, "argument 't'");
}

TEST(LaunchRoles, NothingElseMayTouchATableOrAnAccumulator) {
  Shared table;
  table.t = table.y;
  expect_refused(table.launched(), Reason::plane_overlap, "the input 't' and the output 'y'");
  Shared accumulator;
  accumulator.a = accumulator.x;
  expect_refused(accumulator.launched(), Reason::plane_overlap, "the input 'x' and the output 'a'");
  Shared reduction;
  reduction.r = slice(reduction.y, 0, 0, 1);
  expect_refused(reduction.launched(), Reason::plane_overlap, "the outputs 'y' and 'r'");
}

// One of the two would be lost.
TEST(LaunchInPlace, TwoArgumentsThatAreWrittenAreTwoArrays) {
  Description d;
  kernel::KernelBuilder builder("two");
  const auto x = builder.state("x", {});
  const auto v = builder.state("v", {});
  builder.commit("x", builder.add(x, builder.real(1)));
  builder.commit("v", builder.add(v, builder.real(10)));
  const std::uint32_t two = d.kernel(builder);
  const View a = d.array({8});
  EXPECT_TRUE(launched(d, two, {{"x", a}, {"v", d.array({8})}}).ok());
  expect_refused(launched(d, two, {{"x", a}, {"v", a}}), Reason::plane_overlap, "'v' and 'x' are one array");
}

TEST(LaunchInPlace, IsForTheSameTypeOfElement) {
  Description d;
  kernel::KernelBuilder builder("count");
  builder.output("y", builder.convert(builder.index("i"), kernel::Scalar::f64));
  const std::uint32_t kernel = d.kernel(builder);
  const View y = d.array({8});
  const View bits = array({8}, DType::i64, 0, y.plane);
  expect_refused(launched(d, kernel, {{"i", bits}, {"y", y}}), Reason::plane_overlap, "'i'");
}

TEST(LaunchInPlace, IsForTheSameComponentsAtTheSamePlaces) {
  Description d;
  kernel::KernelBuilder builder("pairs");
  builder.output("w", builder.vector("v", 2));
  const std::uint32_t pairs = d.kernel(builder);
  const View rows = d.array({4, 8});
  const View next = slice(rows, 0, 0, 2);
  EXPECT_TRUE(launched(d, pairs, {{"v", next}, {"w", next}}).ok());
  expect_refused(launched(d, pairs, {{"v", next}, {"w", slice(rows, 0, 0, 2, 2)}}), Reason::plane_overlap,
                 "the input 'v' and the output 'w'");
}

TEST(LaunchInPlace, IsForAsManyComponents) {
  Description d;
  kernel::KernelBuilder builder("grow");
  const auto v = builder.vector("v", 2);
  const auto u = builder.vector("u", 3);
  builder.declare_output("w", u.type);
  builder.declare_output("z", v.type);
  builder.commit("w", u);
  builder.commit("z", v);
  const std::uint32_t kernel = d.kernel(builder);
  const View rows = d.array({3, 8});
  expect_refused(
      launched(d, kernel,
               {{"v", slice(rows, 0, 0, 2)}, {"u", d.array({3, 8})}, {"w", rows}, {"z", d.array({2, 8})}}),
      Reason::plane_overlap, "the input 'v' and the output 'w'");
}

TEST(LaunchBindings, OfAKernelWithManyArgumentsAreListedInPart) {
  const auto refused = [](int arguments) {
    Description d;
    kernel::KernelBuilder builder("many");
    for (int i = 1; i < arguments - 1; ++i) builder.scalar("a" + std::to_string(i));
    const auto last = builder.scalar("b");
    builder.output("y", last);
    return std::string(launched(d, d.kernel(builder), {}).message());
  };
  EXPECT_THAT(refused(40), ::testing::EndsWith("'b', 'y'"));
  EXPECT_THAT(refused(41), ::testing::EndsWith("'b' and 1 more"));
}

}  // namespace
}  // namespace eagle::graph
