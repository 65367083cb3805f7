#include "engine/kernel/transform.h"

#include <gtest/gtest.h>

#include <cstring>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/builder.h"
#include "engine/kernel/interpret.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/random_planes.h"
#include "engine/kernel/text.h"
#include "engine/kernel/verify.h"
#include "engine/kernel/wire.h"

namespace eagle::kernel {
namespace {

// The verifier is the judge of what a kernel may be, and gives the same one back.
void expect_verifies(const Kernel& kernel) {
  v1::Kernel message;
  to_message(kernel, message);
  const StatusOr<Kernel> verified = verify(message);
  ASSERT_TRUE(verified.ok()) << verified.status().to_string() << "\n" << to_text(kernel);
  EXPECT_EQ(*verified, kernel) << to_text(kernel);
}

constexpr std::uint64_t first_seed = 7'000;
constexpr int kernels = 300;

TEST(WithMask, GivesAKernelThatVerifiesWhateverItWas) {
  RandomKernelOptions options;
  options.terminated = 0;
  for (int i = 0; i < kernels; ++i) {
    SCOPED_TRACE("seed " + std::to_string(first_seed + static_cast<std::uint64_t>(i)));
    const Kernel kernel = random_kernel(first_seed + static_cast<std::uint64_t>(i), options);
    const Kernel masked = with_mask(kernel, free_name(kernel, "done"));
    expect_verifies(masked);
    EXPECT_EQ(masked.terminated_argument(), static_cast<int>(kernel.arguments.size()));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(WithMask, SkipsFinishedSamplesAndFinishesNone) {
  KernelBuilder k("count");
  const auto n = k.state("n", {Scalar::i64});
  k.commit("n", k.add(n, k.integer(1)));
  const Kernel masked = with_mask(*k.finish(), "done");
  std::vector<std::int64_t> numbers(4);
  std::vector<std::uint8_t> done = {0, 1, 0, 1};
  const InterpreterPlane planes[] = {{reinterpret_cast<std::byte*>(numbers.data()), 0, 4},
                                     {reinterpret_cast<std::byte*>(done.data()), 0, 4}};
  const InterpreterResult result = interpret_launch(masked, planes, 4, 3);
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{3, 0, 3, 0}));
  EXPECT_EQ(done, (std::vector<std::uint8_t>{0, 1, 0, 1}));
  EXPECT_EQ(result.finished, 0);
}

TEST(WithStopStep, NotesTheStepInWhichASampleFinishes) {
  KernelBuilder k("count");
  const auto n = k.state("n", {Scalar::i64});
  const auto limit = k.index("limit");
  k.terminated("done");
  const auto next = k.add(n, k.integer(1));
  k.commit("n", next);
  k.commit("done", k.ge(next, limit));
  const Kernel noting = with_stop_step(*k.finish(), "stop_step");
  expect_verifies(noting);
  std::vector<std::int64_t> numbers(4), limits = {3, 1, 9, 1}, stops(4);
  std::vector<std::uint8_t> done = {0, 0, 0, 1};
  const InterpreterPlane planes[] = {{reinterpret_cast<std::byte*>(numbers.data()), 0, 4},
                                     {reinterpret_cast<std::byte*>(limits.data()), 0, 4},
                                     {reinterpret_cast<std::byte*>(done.data()), 0, 4},
                                     {reinterpret_cast<std::byte*>(stops.data()), 0, 4}};
  interpret_launch(noting, planes, 4, 5, {0, 4, 100});
  EXPECT_EQ(stops, (std::vector<std::int64_t>{103, 101, 0, 0}));
}

TEST(WithStopStep, GivesAKernelThatVerifiesWhateverItWas) {
  RandomKernelOptions options;
  options.terminated = 100;
  for (int i = 0; i < kernels; ++i) {
    SCOPED_TRACE("seed " + std::to_string(first_seed + static_cast<std::uint64_t>(i)));
    const Kernel kernel = random_kernel(first_seed + static_cast<std::uint64_t>(i), options);
    expect_verifies(with_stop_step(kernel, free_name(kernel, "stop_step")));
    if (::testing::Test::HasFailure()) return;
  }
}

// y = dispatch(kind, x, x*x, dispatch(other, 1/x, -x) if x > 0 else 0)
Kernel nested_groups() {
  KernelBuilder k("nested");
  const auto kind = k.index("kind");
  const auto other = k.index("other");
  const auto x = k.scalar("x");
  k.begin_switch(kind, Dispatch{"outer", DispatchPolicy::automatic});
  k.next_case({x});
  k.next_case({k.mul(x, x)});
  k.begin_if(k.gt(x, k.real(0)));
  k.begin_switch(other, Dispatch{"inner", DispatchPolicy::switch_});
  k.next_case({k.div(k.real(1), x)});
  const auto chosen = k.end_switch({k.neg(x)});
  k.otherwise(chosen);
  const auto value = k.end_if({k.real(0)});
  const auto result = k.end_switch(value);
  k.output("y", result[0]);
  return *k.finish();
}

TEST(GroupsOf, AreThoseThatTheAuthorNamedInTheOrderOfTheText) {
  const std::vector<Group> groups = groups_of(nested_groups());
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].name, "outer");
  EXPECT_EQ(groups[0].branches, 3u);
  EXPECT_EQ(groups[0].policy, DispatchPolicy::automatic);
  EXPECT_EQ(groups[1].name, "inner");
  EXPECT_EQ(groups[1].policy, DispatchPolicy::switch_);
  EXPECT_LT(groups[0].weights[0], groups[0].weights[2]);
}

TEST(WithPolicies, ChangesThePoliciesAlone) {
  const Kernel kernel = nested_groups();
  Kernel changed = with_policies(kernel, {DispatchPolicy::predicated, DispatchPolicy::segmented});
  EXPECT_EQ(groups_of(changed)[0].policy, DispatchPolicy::predicated);
  EXPECT_EQ(groups_of(changed)[1].policy, DispatchPolicy::segmented);
  EXPECT_EQ(with_policies(changed, {DispatchPolicy::automatic, DispatchPolicy::switch_}), kernel);
}

TEST(SelectorsOf, AreTheClampedSelectorsOfSamplesThatComeThere) {
  const Selectors selectors = selectors_of(nested_groups());
  expect_verifies(selectors.kernel);
  EXPECT_EQ(selectors.arguments, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(selectors.groups, (std::vector<std::size_t>{0, 1}));
  std::vector<std::int64_t> kind = {0, 1, 2, 2, 7, -5}, other = {0, 0, 1, 1, 0, 0}, outer(6), inner(6);
  std::vector<double> x = {1, 1, 1, -1, 1, 1};
  const auto plane = [](auto& values) {
    return InterpreterPlane{reinterpret_cast<std::byte*>(values.data()), 0, 6};
  };
  const InterpreterPlane planes[] = {plane(kind), plane(other), plane(x), plane(outer), plane(inner)};
  interpret_launch(selectors.kernel, planes, 6, 1);
  EXPECT_EQ(outer, (std::vector<std::int64_t>{0, 1, 2, 2, 2, 0}));
  EXPECT_EQ(inner, (std::vector<std::int64_t>{-1, -1, 1, -1, 0, -1}));
}

TEST(SelectorsOf, LeaveOutWhatTheyDoNotNeed) {
  KernelBuilder k("one");
  const auto x = k.scalar("x");
  const auto kind = k.state("kind", {Scalar::i64});
  k.terminated("done");
  k.begin_switch(kind, Dispatch{"dispatch0", DispatchPolicy::automatic});
  k.next_case({x});
  const auto y = k.end_switch({k.mul(x, x)});
  k.output("y", y[0]);
  k.commit("kind", k.add(kind, k.integer(1)));
  const Selectors selectors = selectors_of(*k.finish());
  expect_verifies(selectors.kernel);
  EXPECT_EQ(selectors.arguments, (std::vector<std::size_t>{1}));
  for (const Access& access : accesses(selectors.kernel)) EXPECT_NE(access.read, access.written);
}

TEST(SelectorsOf, GiveAKernelThatVerifiesWhateverItWas) {
  int with_groups = 0;
  for (int i = 0; i < kernels; ++i) {
    SCOPED_TRACE("seed " + std::to_string(first_seed + static_cast<std::uint64_t>(i)));
    const Kernel kernel = random_kernel(first_seed + static_cast<std::uint64_t>(i));
    const Selectors selectors = selectors_of(kernel);
    if (selectors.groups.empty()) continue;  // there is nothing to select
    expect_verifies(selectors.kernel);
    ++with_groups;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(with_groups, 5);
}

}  // namespace
}  // namespace eagle::kernel
