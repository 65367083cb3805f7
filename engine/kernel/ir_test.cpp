#include "engine/kernel/ir.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/kernel/builder.h"
#include "engine/kernel/text.h"

namespace eagle::kernel {
namespace {

// "r", "w", "rw" or "-" for each argument of a kernel in text form.
std::vector<std::string> accesses_of(std::string_view text) {
  const StatusOr<Kernel> kernel = from_text(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  std::vector<std::string> result;
  if (!kernel.ok()) return result;
  for (const Access& access : accesses(*kernel)) {
    const std::string letters = std::string(access.read ? "r" : "") + (access.written ? "w" : "");
    result.push_back(letters.empty() ? "-" : letters);
  }
  return result;
}

using Letters = std::vector<std::string>;

TEST(Accesses, FollowWhatTheBodyUses) {
  EXPECT_EQ(accesses_of(R"(kernel @k real=f64
    read %0 used: f64  read %1 unused: f64  param %2 p: f64  output y: f64
    { %3 = add %0, %2 : f64  yield %3 })"),
            (Letters{"r", "-", "-", "w"}));
}

TEST(Accesses, StateThatIsOnlyOverwrittenIsNotRead) {
  EXPECT_EQ(accesses_of("kernel @k real=f64 mutable %0 x: f64 { %1 = constant 1.0 : f64 yield %1 }"),
            Letters{"w"});
}

TEST(Accesses, StateThatKeepsItsValueIsNotWritten) {
  EXPECT_EQ(accesses_of("kernel @k real=f64 mutable %0 x: f64 output y: f64 { yield %0, %0 }"),
            (Letters{"r", "w"}));
}

TEST(Accesses, AStoreOnOneSideOfAnIfKeepsTheOldValueOnTheOther) {
  EXPECT_EQ(accesses_of(R"(kernel @k real=f64 mutable %0 x: f64 read %1 c: bool
    { %3 = if %1 -> f64 { %2 = constant 1.0 : f64 yield %2 } else { yield %0 } yield %3 })"),
            (Letters{"rw", "r"}));
}

TEST(Accesses, WithAMaskEveryStoreIsConditional) {
  EXPECT_EQ(accesses_of(R"(kernel @k real=f64 mutable %0 x: f64 output y: f64 terminated %1 done: bool
    { %2 = constant 1.0 : f64 %3 = constant true : bool yield %2, %2, %3 })"),
            (Letters{"rw", "rw", "rw"}));
}

TEST(Accesses, WithAMaskStateThatKeepsItsValueIsStillNotWritten) {
  EXPECT_EQ(accesses_of("kernel @k real=f64 mutable %0 x: f64 terminated %1 done: bool { yield %0, %1 }"),
            (Letters{"r", "rw"}));
}

TEST(Accesses, AReductionIsStoredWhateverTheMaskSays) {
  KernelBuilder builder("k");
  const auto x = builder.scalar("x");
  builder.declare_reduction("r", {}, ReduceOp::sum);
  builder.terminated("done");
  builder.commit("r", x);
  builder.commit("done", builder.boolean(true));
  const StatusOr<Kernel> kernel = builder.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  const Access reduction = accesses(*kernel).at(1);
  EXPECT_TRUE(reduction.written);
  EXPECT_FALSE(reduction.read);
}

TEST(Accesses, AnAccumulatorIsReadAndWrittenWhereAnyOpAddsToIt) {
  KernelBuilder builder("k");
  const auto x = builder.scalar("x");
  builder.accumulator("unused", {});
  builder.accumulator("a", {});
  builder.accum_add("a", x, {builder.sample_index()});
  const StatusOr<Kernel> kernel = builder.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  const std::vector<Access> found = accesses(*kernel);
  EXPECT_TRUE(found.at(2).read && found.at(2).written && found.at(2).used);
  EXPECT_FALSE(found.at(1).read || found.at(1).written || found.at(1).used);
}

TEST(Accesses, ATableIsReadWhereAnyOpGathersFromIt) {
  EXPECT_EQ(accesses_of(R"(kernel @k real=f64
    table unused: f64  table used[a: 2]: f64  read %0 i: i64  read %1 c: bool  output y: f64
    { %2 = constant 1.0 : f64
      %4 = if %1 -> f64 { %3 = gather @used[%0] : f64 yield %3 } else { yield %2 }  yield %4 })"),
            (Letters{"-", "r", "r", "r", "w"}));
}

TEST(Accesses, SeeWhatLoopsAndSwitchesUse) {
  EXPECT_EQ(accesses_of(R"(kernel @k real=f64
    read %0 initial: i64  read %1 bound: i64  read %2 step: i64  read %3 other: i64  read %4 unused: i64
    output y: i64
    { %9 = while %0 max 4 -> i64 (%5) { %6 = lt %5, %1 : bool yield %6 } do (%7) {
        %8 = add %7, %2 : i64 yield %8 }
      %10 = switch %9 -> i64 case 0 { yield %9 } case 1 { yield %3 }
      yield %10 })"),
            (Letters{"r", "r", "r", "r", "-", "w"}));
}

TEST(Regions, AreEqualInArgumentsOpsAndYields) {
  const Region region{{0, 1}, {Op()}, {1}};
  EXPECT_EQ(region, region);
  EXPECT_FALSE(region == (Region{{0}, region.ops, region.yields}));
  EXPECT_FALSE(region == (Region{region.arguments, {}, region.yields}));
  EXPECT_FALSE(region == (Region{region.arguments, region.ops, {0}}));
}

TEST(ReduceOps, HaveANeutralNumberForEachType) {
  EXPECT_EQ(neutral_bits(ReduceOp::sum, Scalar::f64), 0x8000000000000000U);  // -0.0
  EXPECT_EQ(neutral_bits(ReduceOp::max, Scalar::f64), 0xfff0000000000000U);  // -inf
  EXPECT_EQ(neutral_bits(ReduceOp::min, Scalar::f64), 0x7ff0000000000000U);
  EXPECT_EQ(neutral_bits(ReduceOp::sum, Scalar::f32), 0x80000000U);
  EXPECT_EQ(neutral_bits(ReduceOp::max, Scalar::f32), 0xff800000U);
  EXPECT_EQ(neutral_bits(ReduceOp::min, Scalar::f32), 0x7f800000U);
  EXPECT_EQ(neutral_bits(ReduceOp::sum, Scalar::i64), 0U);
  EXPECT_EQ(neutral_bits(ReduceOp::max, Scalar::i64), 0x8000000000000000U);
  EXPECT_EQ(neutral_bits(ReduceOp::min, Scalar::i64), 0x7fffffffffffffffU);
  EXPECT_EQ(neutral_bits(ReduceOp::sum, Scalar::i32), 0U);
  EXPECT_EQ(neutral_bits(ReduceOp::max, Scalar::i32), 0x80000000U);
  EXPECT_EQ(neutral_bits(ReduceOp::min, Scalar::i32), 0x7fffffffU);
  EXPECT_EQ(neutral_bits(ReduceOp::all, Scalar::boolean), 1U);
  EXPECT_EQ(neutral_bits(ReduceOp::any, Scalar::boolean), 0U);
}

TEST(Types, AreWrittenWithTheirExtents) {
  EXPECT_EQ(to_string(Type{Scalar::f32}), "f32");
  EXPECT_EQ(to_string(Type{Scalar::boolean, 1, {3, 1}}), "bool[3]");
  EXPECT_EQ(to_string(Type{Scalar::f64, 2, {2, 3}}), "f64[2,3]");
  EXPECT_EQ((Type{Scalar::f64, 2, {2, 3}}.components()), 6);
}

TEST(Types, AVectorOfOneIsNotAScalar) { EXPECT_NE((Type{Scalar::f64, 1, {1, 1}}), Type{Scalar::f64}); }

TEST(Kernels, KnowTheirMask) {
  EXPECT_EQ(from_text("kernel @k real=f64 read %0 x: f64 { yield }")->terminated_argument(), -1);
  EXPECT_EQ(from_text("kernel @k real=f64 read %0 x: f64 terminated %1 d: bool { yield %1 }")
                ->terminated_argument(),
            1);
}

}  // namespace
}  // namespace eagle::kernel
