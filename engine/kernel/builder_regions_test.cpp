// Loops, switches, tables and vectors from C++.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "engine/kernel/builder.h"
#include "engine/kernel/text.h"

namespace eagle::kernel {
namespace {

using testing::HasSubstr;
using Value = KernelBuilder::Value;

TEST(Builder, MakesLoopsSwitchesAndTables) {
  KernelBuilder b("mixed");
  const auto x = b.scalar("x");
  b.table("t", Type{Scalar::f64, 1, {2, 1}}, {{"a", 3}, {"b", 4}});
  b.table("u", Type{Scalar::i64});
  const auto i = b.sample_index();
  const auto carried = b.begin_while({i, x}, 100);
  const auto holds = b.lt(carried[0], b.n_samples());
  const auto body = b.while_condition(holds);
  const auto next = b.gather("u", {body[0]});
  const auto looped = b.end_while({next, body[1]});
  b.begin_switch(looped[0], Dispatch{"group", DispatchPolicy::automatic});
  const auto element = b.gather("t", {i, looped[0]});
  b.next_case({b.extract(element, 1)});
  const auto chosen = b.end_switch({looped[1]});
  b.output("y", b.compose({chosen[0], x}, Type{Scalar::f64, 2, {2, 1}}));
  b.output("z", b.op(Opcode::floor_div, {i, b.step_index()}));
  const StatusOr<Kernel> kernel = b.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  EXPECT_EQ(to_text(*kernel), R"(kernel @mixed real=f64
  read %0 x: f64
  table t[a: 3, b: 4]: f64[2]
  table u: i64
  output y: f64[2,1]
  output z: i64
{
  %1 = sample_index : i64
  %9, %10 = while %1, %0 max 100 -> i64, f64 (%2, %3) {
    %4 = n_samples : i64
    %5 = lt %2, %4 : bool
    yield %5
  } do (%6, %7) {
    %8 = gather @u[%6] : i64
    yield %8, %7
  }
  %13 = switch %9 dispatch @group auto -> f64 case 0 {
    %11 = gather @t[%1, %9] : f64[2]
    %12 = extract %11[1] : f64
    yield %12
  } case 1 {
    yield %10
  }
  %14 = compose %13, %0 : f64[2,1]
  %15 = step_index : i64
  %16 = floor_div %1, %15 : i64
  yield %14, %16
}
)");
}

TEST(Builder, NestsStructureOfEveryKind) {
  KernelBuilder b("k");
  const auto x = b.scalar("x");
  const auto zero = b.integer(0);
  const auto outer = b.begin_while({x}, 3);
  b.begin_if(b.lt(outer[0], x));
  b.begin_switch(zero);
  const auto inner = b.begin_while({x}, 2);
  b.while_condition(b.lt(inner[0], x));
  const auto inner_result = b.end_while({x});
  const auto cases = b.end_switch(inner_result);
  b.otherwise({b.lt(cases[0], x)});
  const auto holds = b.end_if({b.boolean(true)});
  const auto body = b.while_condition(holds[0]);
  b.output("y", b.end_while({body[0]})[0]);
  const StatusOr<Kernel> kernel = b.finish();
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
}

// After an error results may still be indexed, wherever the caller is by then.
TEST(Builder, GivesAsManyValuesAfterAnError) {
  KernelBuilder b("k");
  const auto x = b.scalar("x");
  b.refuse("a layer above says no");
  EXPECT_EQ(b.begin_while({x, x}, 3).size(), 2u);
  EXPECT_EQ(b.begin_while({x}, 3).size(), 1u);
  EXPECT_EQ(b.while_condition(x).size(), 1u);
  EXPECT_EQ(b.end_while({x}).size(), 1u);
  EXPECT_EQ(b.while_condition(x).size(), 2u);
  EXPECT_EQ(b.end_while({x}).size(), 2u);
  b.begin_switch(x);
  b.next_case({x});
  EXPECT_EQ(b.end_switch({x, x, x}).size(), 3u);
  EXPECT_FALSE(b.gather("t", {x}).valid());
  EXPECT_FALSE(b.compose({x}, Type{Scalar::f64, 1, {1, 1}}).valid());
  EXPECT_FALSE(b.extract(x, 0).valid());
  EXPECT_EQ(b.finish().status().message(), "kernel 'k': a layer above says no");
}

struct Case {
  const char* name;
  std::function<void(KernelBuilder&, Value x, Value i)> build;
  const char* expected;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class BadStructure : public testing::TestWithParam<Case> {};

TEST_P(BadStructure, IsRefusedWhereItIsBuilt) {
  KernelBuilder b("k");
  const auto x = b.scalar("x");
  const auto i = b.index("i");
  b.table("t", Type{Scalar::f64}, {{"a", 2}, {"b", 2}});
  GetParam().build(b, x, i);
  const StatusOr<Kernel> kernel = b.finish();
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().reason(), Reason::malformed_kernel);
  EXPECT_THAT(kernel.status().message(), HasSubstr(GetParam().expected));
}

const Case cases[] = {
    {"open_while", [](auto& b, auto x, auto) { b.begin_while({x}, 1); },
     "finish: a while is still open (call end_while)"},
    {"open_switch", [](auto& b, auto, auto i) { b.begin_switch(i); },
     "finish: a switch is still open (call end_switch)"},
    {"no_trips", [](auto& b, auto x, auto) { b.begin_while({x}, 0); },
     "begin_while: expected at least 1 for max_trips, found 0"},
    {"condition_outside", [](auto& b, auto x, auto) { b.while_condition(b.lt(x, x)); },
     "while_condition: no while is open whose condition is being built"},
    {"two_conditions",
     [](auto& b, auto x, auto) {
       b.begin_while({x}, 1);
       const auto holds = b.lt(x, x);
       b.while_condition(holds);
       b.while_condition(b.boolean(true));
     },
     "while_condition: no while is open whose condition is being built"},
    {"real_condition",
     [](auto& b, auto x, auto) {
       b.begin_while({x}, 1);
       b.while_condition(x);
     },
     "while_condition: expected bool, found f64"},
    {"end_without_condition",
     [](auto& b, auto x, auto) {
       b.begin_while({x}, 1);
       b.end_while({x});
     },
     "end_while: no while is open whose body has begun (call while_condition first)"},
    {"next_of_another_type",
     [](auto& b, auto x, auto i) {
       b.begin_while({x}, 1);
       b.while_condition(b.boolean(false));
       b.end_while({i});
     },
     "end_while: yield 0: expected f64 (as the carried values), found i64"},
    {"next_too_many",
     [](auto& b, auto x, auto) {
       b.begin_while({x}, 1);
       b.while_condition(b.boolean(false));
       b.end_while({x, x});
     },
     "end_while: expected 1 yield (as the carried values), found 2"},
    {"end_if_of_a_while",
     [](auto& b, auto x, auto) {
       b.begin_if(b.lt(x, x));
       b.otherwise({x});
       b.begin_while({x}, 1);
       b.end_if({x});
     },
     "end_if: no if is open whose else side has begun"},
    {"value_of_an_ended_condition",
     [](auto& b, auto x, auto) {
       const auto carried = b.begin_while({x}, 1);
       b.while_condition(b.boolean(false));
       b.output("y", b.end_while({carried[0]})[0]);
     },
     "of a region that has ended"},
    {"real_selector", [](auto& b, auto x, auto) { b.begin_switch(x); },
     "switch: operand 0: expected i64 (the selector), found f64"},
    {"next_case_outside", [](auto& b, auto x, auto) { b.next_case({x}); }, "next_case: no switch is open"},
    {"end_switch_outside", [](auto& b, auto x, auto) { b.end_switch({x}); }, "end_switch: no switch is open"},
    {"case_type",
     [](auto& b, auto x, auto i) {
       b.begin_switch(i);
       b.next_case({x});
       b.end_switch({i});
     },
     "end_switch: yield 0: expected f64 (as the first case), found i64"},
    {"commit_inside",
     [](auto& b, auto x, auto) {
       b.declare_output("y", Type{Scalar::f64});
       b.begin_while({x}, 1);
       b.commit("y", x);
     },
     "commit: 'y' inside a while; yield the value from there and commit the result"},
    {"no_such_table", [](auto& b, auto, auto i) { b.gather("u", {i}); },
     "gather: expected a table named 'u', found no argument of that name; declare it with table first"},
    {"not_a_table", [](auto& b, auto, auto i) { b.gather("x", {i}); },
     "gather: expected a table named 'x', found a read argument of that name"},
    {"missing_index", [](auto& b, auto, auto i) { b.gather("t", {i}); },
     "gather: expected 2 operands (one for each axis of the table), found 1"},
    {"real_index", [](auto& b, auto x, auto i) { b.gather("t", {i, x}); },
     "gather: operand 1: expected i64 (an index), found f64"},
    {"no_such_axis_extent", [](auto& b, auto, auto) { b.table("u", Type{Scalar::f64}, {{"a", 0}}); },
     "arguments[3].axes[0].extent: expected at least 1, found 0"},
    {"component_outside",
     [](auto& b, auto x, auto) { b.extract(b.compose({x, x}, Type{Scalar::f64, 1, {2, 1}}), 2); },
     "extract: expected a component below 2 of f64[2], found 2"},
    {"composed_count", [](auto& b, auto x, auto) { b.compose({x}, Type{Scalar::f64, 1, {2, 1}}); },
     "compose: expected 2 operands (one for each component), found 1"},
    {"real_division", [](auto& b, auto x, auto) { b.op(Opcode::modulo, {x, x}); },
     "modulo: operand 0: expected integers, found f64"},
};
INSTANTIATE_TEST_SUITE_P(Builder, BadStructure, testing::ValuesIn(cases),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace eagle::kernel
