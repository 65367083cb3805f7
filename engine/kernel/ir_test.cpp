#include "engine/kernel/ir.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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
