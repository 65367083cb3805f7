#include "engine/kernel/random_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include "engine/kernel/random_planes.h"
#include "engine/kernel/text.h"
#include "engine/kernel/typing.h"
#include "engine/kernel/wire.h"

namespace eagle::kernel {
namespace {

struct Seen {
  std::set<Opcode> opcodes;
  std::set<Scalar> scalars;
  std::set<int> ranks;
  std::set<Role> roles;
  int depth = 0;
  int axes = 0;
  int groups = 0;

  void look(const Region& region, int at) {
    depth = std::max(depth, at);
    for (const Op& op : region.ops) {
      opcodes.insert(op.code);
      if (op.dispatch) ++groups;
      for (const Region& nested : op.regions) look(nested, at + 1);
    }
  }
};

TEST(RandomKernel, AFewHundredReachEverything) {
  Seen seen;
  for (std::uint64_t seed = 0; seed < 800; ++seed) {
    const Kernel kernel = random_kernel(seed);
    seen.look(kernel.body, 0);
    for (const Argument& argument : kernel.arguments) {
      seen.roles.insert(argument.role);
      if (!argument.axes.empty()) ++seen.axes;
    }
    for (const Type& type : kernel.value_types) {
      seen.scalars.insert(type.scalar);
      seen.ranks.insert(type.rank);
    }
  }
  EXPECT_EQ(seen.opcodes.size(), rules().size());
  EXPECT_EQ(seen.scalars.size(), 5u);
  EXPECT_EQ(seen.ranks.size(), 3u);
  EXPECT_EQ(seen.roles.size(), 8u);
  EXPECT_EQ(seen.depth, RandomKernelOptions{}.depth);
  EXPECT_GT(seen.axes, 30);
  EXPECT_GT(seen.groups, 30);
}

TEST(RandomKernel, LaunchesFinishMissTheirTablesAndDivideByZero) {
  InterpreterResult total;
  for (std::uint64_t seed = 0; seed < 800; ++seed) {
    const Kernel kernel = random_kernel(seed);
    Random random(seed);
    Planes planes = random_planes(kernel, 3, random);
    const InterpreterResult result = interpret_launch(kernel, planes.interpreter_planes(), 3, 2);
    total.finished += result.finished;
    total.clamped += result.clamped;
    total.zero_divisions += result.zero_divisions;
  }
  EXPECT_GT(total.finished, 20);
  EXPECT_GT(total.clamped, 100);
  EXPECT_GT(total.zero_divisions, 100);
}

TEST(RandomPlanes, AreWhatALaunchNeedsAndCopiesAreTheirOwn) {
  const StatusOr<Kernel> kernel = from_text(R"(kernel @k real=f64
    read %0 x: f64[2] param %1 p: i64 table t[a: 2, b: 3]: bool table u: f64 terminated %2 done: bool
    output y: f64 { %3 = extract %0[1] : f64 yield %2, %3 })");
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  Random random(1);
  Planes planes = random_planes(*kernel, 5, random);
  EXPECT_EQ(planes.lengths[0], 5);
  EXPECT_EQ(planes.strides[0], (5 + 2) * 8);
  EXPECT_EQ(planes.bytes[0].size(), std::size_t{2 * (5 + 2) * 8});
  EXPECT_EQ(planes.addresses()[1], nullptr);
  EXPECT_EQ(planes.lengths[2], 6);
  EXPECT_EQ(planes.strides[2], 6 + 2);
  EXPECT_GE(planes.lengths[3], 1);
  EXPECT_EQ(planes.lengths[4], 5);

  Planes copy = planes;
  EXPECT_EQ(first_difference(*kernel, planes, copy), "");
  EXPECT_NE(copy.addresses()[0], planes.addresses()[0]);
  copy.bytes[4][6] ^= std::byte{1};  // a guard
  EXPECT_EQ(first_difference(*kernel, planes, copy).substr(0, 24), "argument done at byte 6:");
}

TEST(RandomPlanes, CompareANanAsEqualToAnyOther) {
  const StatusOr<Kernel> kernel = from_text("kernel @k real=f64 read %0 x: f64 { yield }");
  ASSERT_TRUE(kernel.ok());
  Random random(1);
  Planes a = random_planes(*kernel, 1, random);
  Planes b = a;
  const double quiet = std::nan("1"), other = -std::nan("2"), zero = 0.0, negative_zero = -0.0;
  std::memcpy(a.addresses()[0], &quiet, sizeof quiet);
  std::memcpy(b.addresses()[0], &other, sizeof other);
  EXPECT_EQ(first_difference(*kernel, a, b), "");
  std::memcpy(a.addresses()[0], &zero, sizeof zero);
  EXPECT_NE(first_difference(*kernel, a, b), "");
  std::memcpy(b.addresses()[0], &negative_zero, sizeof negative_zero);
  EXPECT_NE(first_difference(*kernel, a, b), "");
}

TEST(RandomKernel, IsTheSameForTheSameSeed) {
  EXPECT_EQ(random_kernel(5), random_kernel(5));
  EXPECT_NE(content_hash(random_kernel(5)), content_hash(random_kernel(6)));
}

TEST(RandomKernel, KeepsToItsOptions) {
  RandomKernelOptions options;
  options.depth = 0;
  options.terminated = 100;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Kernel kernel = random_kernel(seed, options);
    for (const Op& op : kernel.body.ops) EXPECT_TRUE(op.regions.empty()) << to_text(kernel);
    EXPECT_GE(kernel.terminated_argument(), 0);
  }
}

}  // namespace
}  // namespace eagle::kernel
