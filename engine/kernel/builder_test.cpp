#include "engine/kernel/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>

#include "engine/kernel/text.h"

namespace eagle::kernel {
namespace {

using testing::HasSubstr;

void expect_error(KernelBuilder& b, const char* text, Reason reason = Reason::malformed_kernel) {
  const StatusOr<Kernel> kernel = b.finish();
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().reason(), reason);
  EXPECT_THAT(kernel.status().message(), HasSubstr(text));
}

TEST(Builder, MakesWhatTheTextFormSays) {
  KernelBuilder b("mixed", Scalar::f32);
  const auto v = b.vector("v", 3);
  b.matrix("m", 2, 3);
  const auto i = b.index("i");
  const auto s = b.state("s", Type{Scalar::f32, 1, {3, 1}});
  const auto n = b.integer_param("n");
  b.terminated("done");
  const auto same = b.eq(i, n);
  b.begin_if(same);
  const auto sum = b.add(v, s);
  b.otherwise({sum, same});
  const auto results = b.end_if({v, b.boolean(false)});
  b.commit("s", results[0]);
  b.commit("done", results[1]);
  b.output("y", b.convert(i, Scalar::f32));
  const StatusOr<Kernel> kernel = b.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  EXPECT_EQ(to_text(*kernel), R"(kernel @mixed real=f32
  read %0 v: f32[3]
  read %1 m: f32[2,3]
  read %2 i: i64
  mutable %3 s: f32[3]
  param %4 n: i64
  terminated %5 done: bool
  output y: f32
{
  %6 = eq %2, %4 : bool
  %9, %10 = if %6 -> f32[3], bool {
    %7 = add %0, %3 : f32[3]
    yield %7, %6
  } else {
    %8 = constant false : bool
    yield %0, %8
  }
  %11 = convert %2 : f32
  yield %9, %10, %11
}
)");
}

TEST(Builder, RecordsLocations) {
  KernelBuilder b("k");
  const auto x = b.scalar("x");
  EXPECT_EQ(b.source_file("a.py"), 0u);
  EXPECT_EQ(b.source_file("b.py"), 1u);
  EXPECT_EQ(b.source_file("a.py"), 0u);
  b.at({1, 12, 5});
  b.output("y", b.neg(x));
  const StatusOr<Kernel> kernel = b.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  EXPECT_EQ(kernel->body.ops[0].location, (Location{1, 12, 5}));
  EXPECT_EQ(kernel->source_files, (std::vector<std::string>{"a.py", "b.py"}));
}

TEST(Builder, StateThatIsNeverCommittedKeepsItsValue) {
  KernelBuilder b("k");
  const auto s = b.state("s", Type{Scalar::f64});
  const auto done = b.terminated("done");
  const StatusOr<Kernel> kernel = b.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  EXPECT_EQ(kernel->body.yields, (std::vector<ValueId>{s.id, done.id}));
}

TEST(Builder, TheLastCommitCounts) {
  KernelBuilder b("k");
  const auto s = b.state("s", Type{Scalar::f64});
  const auto last = b.neg(s);
  b.commit("s", b.add(s, s));
  b.commit("s", last);
  EXPECT_EQ(b.finish()->body.yields, std::vector<ValueId>{last.id});
}

TEST(Builder, RoundsConstantsToTheRealTypeOnce) {
  KernelBuilder b("k", Scalar::f32);
  b.output("y", b.real(0.1));
  const StatusOr<Kernel> kernel = b.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  EXPECT_EQ(kernel->body.ops[0].bits, std::bit_cast<std::uint32_t>(0.1f));
}

TEST(Builder, TheFirstErrorSticks) {
  KernelBuilder b("k");
  const auto x = b.scalar("x");
  const auto bad = b.add(x, b.boolean(true));
  EXPECT_FALSE(bad.valid());
  EXPECT_FALSE(b.mul(bad, x).valid());
  b.begin_if(bad);
  b.otherwise({bad});
  ASSERT_EQ(b.end_if({bad}).size(), 1u);
  b.output("y", bad);
  EXPECT_FALSE(b.status().ok());
  expect_error(b, "kernel 'k': add: operand 1: expected reals or integers, found bool");
}

TEST(Builder, ErrorsSayWhereInTheSource) {
  KernelBuilder b("k");
  const auto x = b.scalar("x");
  b.at({b.source_file("model.py"), 3, 9});
  b.op(Opcode::logical_not, {x});
  expect_error(b, "not: operand 0: expected bool, found f64 (at model.py:3:9)");
}

TEST(Builder, RefusesAValueThatIsNotItsOwn) {
  KernelBuilder other("other");
  other.scalar("a");
  const auto foreign = other.neg(other.scalar("b"));
  KernelBuilder b("k");
  const auto x = b.scalar("x");
  b.add(x, foreign);
  expect_error(b, "add: expected a value of this kernel, found another (operand 1)");
}

TEST(Builder, RefusesAValueFromASideThatHasEnded) {
  KernelBuilder b("k");
  const auto x = b.scalar("x");
  b.begin_if(b.lt(x, x));
  const auto inner = b.neg(x);
  b.otherwise({});
  b.end_if({});
  b.output("y", inner);
  expect_error(b, "of a region that has ended");
}

TEST(Builder, NamesAnOutputThatWasNeverCommitted) {
  KernelBuilder b("k");
  b.scalar("x");
  b.declare_output("y", Type{Scalar::f64});
  expect_error(b, "output 'y' was declared but never committed");
}

TEST(Builder, RefusesCommitsThatCannotBe) {
  {
    KernelBuilder b("k");
    b.commit("x", b.scalar("x"));
    expect_error(b, "commit: 'x' is a read argument; expected a mutable, output, terminated or reduce one");
  }
  {
    KernelBuilder b("k");
    b.commit("z", b.scalar("x"));
    expect_error(b, "commit: there is no argument 'z'");
  }
  {
    KernelBuilder b("k");
    b.state("s", Type{Scalar::f64});
    b.commit("s", b.boolean(true));
    expect_error(b, "commit: expected f64 for 's', found bool");
  }
  {
    KernelBuilder b("k");
    const auto s = b.state("s", Type{Scalar::f64});
    b.begin_if(b.lt(s, s));
    b.commit("s", s);
    expect_error(b, "commit: 's' inside an if; yield the value from there");
  }
}

TEST(Builder, RefusesArgumentsAfterOpsAndTwiceTheSameName) {
  {
    KernelBuilder b("k");
    b.neg(b.scalar("x"));
    b.scalar("late");
    expect_error(b, "argument 'late' comes after the first op");
  }
  {
    KernelBuilder b("k");
    b.scalar("x");
    b.param("x");
    expect_error(b, "param: there is already an argument 'x'");
  }
}

TEST(Builder, RefusesAnIfThatDoesNotBalance) {
  {
    KernelBuilder b("k");
    const auto x = b.scalar("x");
    b.begin_if(b.lt(x, x));
    expect_error(b, "finish: an if is still open");
  }
  {
    KernelBuilder b("k");
    b.otherwise({b.scalar("x")});
    expect_error(b, "otherwise: no if is open");
  }
  {
    KernelBuilder b("k");
    const auto x = b.scalar("x");
    b.begin_if(b.lt(x, x));
    b.end_if({x});
    expect_error(b, "end_if: no if is open whose else side has begun");
  }
  {
    KernelBuilder b("k");
    const auto x = b.scalar("x");
    b.begin_if(b.lt(x, x));
    b.otherwise({x});
    b.end_if({b.boolean(true)});
    expect_error(b, "end_if: yield 0: expected f64 (as the then side), found bool");
  }
  {
    KernelBuilder b("k");
    b.begin_if(b.scalar("x"));
    expect_error(b, "if: operand 0: expected bool (the condition), found f64");
  }
}

TEST(Builder, RefusesStructureAsAPlainOp) {
  KernelBuilder b("k");
  b.op(Opcode::if_, {b.scalar("x")});
  expect_error(b, "op: expected a plain operation");
}

TEST(Builder, RefusesWhatHasACallOfItsOwnAsAPlainOp) {
  for (const Opcode code :
       {Opcode::constant, Opcode::while_, Opcode::switch_, Opcode::gather, Opcode::extract}) {
    KernelBuilder b("k");
    b.op(code, {b.scalar("x")});
    expect_error(b, "op: expected a plain operation");
  }
}

TEST(Builder, RefusesExtentsThatNoTypeHas) {
  for (const int width : {0, -1, 65'536, std::numeric_limits<int>::min()}) {
    KernelBuilder b("k");
    b.vector("v", width);
    expect_error(b, "read: argument 'v': expected at most 2 extents, each from 1 to 65535, found f64[0]");
  }
}

TEST(Builder, RefusesTypesThatAreNotWellFormed) {
  for (const Type& type : {Type{Scalar::f64, 3, {2, 2}}, Type{Scalar::f64, 0, {2, 1}},
                           Type{Scalar::f64, 1, {2, 2}}, Type{Scalar::f64, 2, {2, 0}}}) {
    KernelBuilder b("k");
    b.state("s", type);
    expect_error(b, "mutable: argument 's': expected at most 2 extents");
  }
}

TEST(Builder, RefusesTypesWithTooManyComponentsAtOnce) {
  {
    KernelBuilder b("k");
    EXPECT_FALSE(b.matrix("m", 65'535, 65'535).valid());
    expect_error(b,
                 "read: argument 'm': expected at most 64 components (limit kernel_components), found "
                 "4294836225 in f64[65535,65535]",
                 Reason::kernel_limit);
  }
  {
    KernelBuilder b("k");
    b.compose({b.scalar("x")}, Type{Scalar::f64, 2, {65'535, 65'535}});
    expect_error(b, "compose: expected at most 64 components", Reason::kernel_limit);
  }
}

TEST(Builder, IsSpentAfterFinish) {
  KernelBuilder b("k");
  const auto x = b.scalar("x");
  ASSERT_TRUE(b.finish().ok());
  EXPECT_FALSE(b.neg(x).valid());
  EXPECT_EQ(b.status().reason(), Reason::bad_value);
  expect_error(b, "the builder is spent", Reason::bad_value);
}

}  // namespace
}  // namespace eagle::kernel
