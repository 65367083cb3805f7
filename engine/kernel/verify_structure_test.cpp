// What the verifier asks of loops, switches, tables, vectors and integers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/builder.h"
#include "engine/kernel/verify.h"
#include "engine/kernel/wire.h"

namespace eagle::kernel {
namespace {

using testing::HasSubstr;

// read n: i64 (%0), read x: f64 (%1), table t[row 3, column 4]: f64, table u: f64[2], output y
// ops 0: while %0, %1 (args %2 %3, %4 = lt; args %5 %6, %7 = add) -> %8, %9    1: switch %8 (3 cases) -> %10
// 2: gather t[%8, %0] -> %11   3: gather u[%8] -> %12   4: compose %11, %10 -> %13   5: extract %13[1] -> %14
// 6: floor_div %0, %8 -> %15
v1::Kernel valid() {
  KernelBuilder b("k");
  const auto n = b.index("n");
  const auto x = b.scalar("x");
  b.table("t", Type{Scalar::f64}, {{"row", 3}, {"column", 4}});
  b.table("u", Type{Scalar::f64, 1, {2, 1}});
  const auto carried = b.begin_while({n, x}, 10);
  const auto body = b.while_condition(b.lt(carried[1], x));
  const auto looped = b.end_while({body[0], b.add(body[1], x)});
  b.begin_switch(looped[0], Dispatch{"group", DispatchPolicy::segmented});
  b.next_case({x});
  b.next_case({looped[1]});
  const auto chosen = b.end_switch({x})[0];
  const auto element = b.gather("t", {looped[0], n});
  b.gather("u", {looped[0]});
  const auto pair = b.compose({element, chosen}, Type{Scalar::f64, 1, {2, 1}});
  const auto second = b.extract(pair, 1);
  b.op(Opcode::floor_div, {n, looped[0]});
  b.output("y", second);
  const StatusOr<Kernel> kernel = b.finish();
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  v1::Kernel message;
  to_message(*kernel, message);
  return message;
}

v1::Op& op(v1::Kernel& kernel, int i) { return *kernel.mutable_body()->mutable_ops(i); }
v1::Region& region(v1::Kernel& kernel, int i, int r) { return *op(kernel, i).mutable_regions(r); }
v1::Argument& table(v1::Kernel& kernel) { return *kernel.mutable_arguments(2); }

void set_scalar(v1::Type& type, v1::ScalarType scalar) {
  type.Clear();
  type.set_scalar(scalar);
}

TEST(VerifyStructure, NumbersARegionsArgumentsBeforeItsOpsAndResultsLast) {
  const StatusOr<Kernel> kernel = verify(valid());
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  const Op& loop = kernel->body.ops[0];
  EXPECT_EQ(loop.regions[0].arguments, (std::vector<ValueId>{2, 3}));
  EXPECT_EQ(loop.regions[1].arguments, (std::vector<ValueId>{5, 6}));
  EXPECT_EQ(loop.results, (std::vector<ValueId>{8, 9}));
  EXPECT_EQ(loop.max_trips, 10u);
  EXPECT_EQ(kernel->body.ops[1].dispatch, (Dispatch{"group", DispatchPolicy::segmented}));
  EXPECT_EQ(kernel->body.ops[2].argument, 2u);
  EXPECT_EQ(kernel->body.ops[5].component, 1u);
  EXPECT_EQ(kernel->value_types[11], Type{Scalar::f64});
  EXPECT_EQ(kernel->value_types[12], (Type{Scalar::f64, 1, {2, 1}}));
  EXPECT_EQ(kernel->value_types[13], (Type{Scalar::f64, 1, {2, 1}}));
  EXPECT_EQ(kernel->value_types[14], Type{Scalar::f64});
  EXPECT_EQ(kernel->value_types[15], Type{Scalar::i64});
}

struct Case {
  const char* name;
  std::function<void(v1::Kernel&)> damage;
  const char* path;
  const char* expected;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class MalformedStructure : public testing::TestWithParam<Case> {};

TEST_P(MalformedStructure, IsRefusedWithThePathAndWhatWasExpected) {
  v1::Kernel message = valid();
  GetParam().damage(message);
  const Status status = verify(message).status();
  EXPECT_EQ(status.reason(), Reason::malformed_kernel);
  EXPECT_THAT(status.message(), HasSubstr(std::string(": ") + GetParam().path + ": "));
  EXPECT_THAT(status.message(), HasSubstr(GetParam().expected));
}

const Case cases[] = {
    // Loops.
    {"no_max_trips", [](auto& k) { op(k, 0).clear_max_trips(); }, "body.ops[0].max_trips",
     "while: expected at least 1, found 0"},
    {"no_body", [](auto& k) { op(k, 0).mutable_regions()->RemoveLast(); }, "body.ops[0].regions",
     "while: expected 2 regions, found 1"},
    {"missing_carried", [](auto& k) { region(k, 0, 1).mutable_arguments()->RemoveLast(); },
     "body.ops[0].regions[1].arguments", "expected 2 (one for each operand), found 1"},
    {"extra_operand", [](auto& k) { op(k, 0).add_operands(0); }, "body.ops[0].regions[0].arguments",
     "expected 3 (one for each operand), found 2"},
    {"carried_type", [](auto& k) { set_scalar(*region(k, 0, 0).mutable_arguments(0), v1::F64); },
     "body.ops[0].regions[0].arguments[0]", "expected i64 (the type of operand 0), found f64"},
    {"carried_without_type", [](auto& k) { region(k, 0, 0).mutable_arguments(0)->Clear(); },
     "body.ops[0].regions[0].arguments[0].scalar", "expected a scalar type, found none"},
    {"real_loop_condition", [](auto& k) { region(k, 0, 0).set_yields(0, 3); },
     "body.ops[0].regions[0].yields[0]", "expected bool (as the condition), found f64"},
    {"two_conditions", [](auto& k) { region(k, 0, 0).add_yields(4); }, "body.ops[0].regions[0].yields",
     "expected 1 yield (as the condition), found 2"},
    {"next_type", [](auto& k) { region(k, 0, 1).set_yields(0, 6); }, "body.ops[0].regions[1].yields[0]",
     "expected i64 (as the carried values), found f64"},
    {"too_few_next", [](auto& k) { region(k, 0, 1).mutable_yields()->RemoveLast(); },
     "body.ops[0].regions[1].yields", "expected 2 yields (as the carried values), found 1"},
    {"condition_value_in_the_body", [](auto& k) { region(k, 0, 1).set_yields(1, 3); },
     "body.ops[0].regions[1].yields[1]", "found %3 of a region that has ended"},
    {"own_argument_as_operand", [](auto& k) { op(k, 0).set_operands(0, 2); }, "body.ops[0].operands[0]",
     "(so far there are 2), found %2"},
    // Switches.
    {"no_cases", [](auto& k) { op(k, 1).clear_regions(); }, "body.ops[1].regions",
     "switch: expected at least 1 region, found 0"},
    {"real_selector", [](auto& k) { op(k, 1).set_operands(0, 1); }, "body.ops[1].operands[0]",
     "switch: expected i64 (the selector), found f64"},
    {"case_type", [](auto& k) { region(k, 1, 2).set_yields(0, 0); }, "body.ops[1].regions[2].yields[0]",
     "expected f64 (as the first region), found i64"},
    {"case_arguments", [](auto& k) { set_scalar(*region(k, 1, 1).add_arguments(), v1::F64); },
     "body.ops[1].regions[1].arguments", "expected none (no values are carried), found 1"},
    {"no_policy", [](auto& k) { op(k, 1).mutable_dispatch()->clear_policy(); }, "body.ops[1].dispatch.policy",
     "expected a dispatch policy, found none"},
    {"unknown_policy",
     [](auto& k) { op(k, 1).mutable_dispatch()->set_policy(static_cast<v1::DispatchPolicy>(9)); },
     "body.ops[1].dispatch.policy", "found the unknown number 9"},
    {"unnamed_group", [](auto& k) { op(k, 1).mutable_dispatch()->clear_name(); }, "body.ops[1].dispatch.name",
     "expected a name, found an empty one"},
    {"group_not_utf8", [](auto& k) { op(k, 1).mutable_dispatch()->set_name("\xff"); },
     "body.ops[1].dispatch.name", "expected UTF-8"},
    // Tables.
    {"unnamed_axis", [](auto& k) { table(k).mutable_axes(1)->clear_name(); }, "arguments[2].axes[1].name",
     "expected a name, found an empty one"},
    {"same_axis", [](auto& k) { table(k).mutable_axes(1)->set_name("row"); }, "arguments[2].axes[1].name",
     "expected a name of its own, found 'row' for a second time"},
    {"no_extent", [](auto& k) { table(k).mutable_axes(0)->clear_extent(); }, "arguments[2].axes[0].extent",
     "expected at least 1, found 0"},
    {"i32_table", [](auto& k) { set_scalar(*table(k).mutable_type(), v1::I32); }, "arguments[2].type",
     "expected elements of f64 (the kernel's real type), i64 or bool for the table argument 't', found i32"},
    {"gather_from_nothing", [](auto& k) { op(k, 2).set_argument(5); }, "body.ops[2].argument",
     "gather: expected an index below 5 (the number of arguments), found 5"},
    {"gather_from_a_plane", [](auto& k) { op(k, 2).clear_argument(); }, "body.ops[2].argument",
     "gather: expected a table argument, found argument 0, a read one"},
    {"missing_index", [](auto& k) { op(k, 2).mutable_operands()->RemoveLast(); }, "body.ops[2]",
     "gather: expected 2 operands (one for each axis of the table), found 1"},
    {"two_indices_without_axes", [](auto& k) { op(k, 3).add_operands(0); }, "body.ops[3]",
     "gather: expected 1 operand (one for each axis of the table), found 2"},
    {"real_index", [](auto& k) { op(k, 2).set_operands(1, 1); }, "body.ops[2].operands[1]",
     "gather: expected i64 (an index), found f64"},
    {"samples_from_tables_only",
     [](auto& k) {
       k.clear_body();
       k.mutable_arguments()->DeleteSubrange(4, 1);
       k.mutable_arguments()->DeleteSubrange(0, 2);
     },
     "arguments", "found params and planes of other lengths only"},
    // Vectors.
    {"missing_component", [](auto& k) { op(k, 4).mutable_operands()->RemoveLast(); }, "body.ops[4]",
     "compose: expected 2 operands (one for each component), found 1"},
    {"component_type", [](auto& k) { op(k, 4).set_operands(1, 0); }, "body.ops[4].operands[1]",
     "compose: expected f64 (the type of operand 0), found i64"},
    {"vector_component", [](auto& k) { op(k, 4).set_operands(1, 12); }, "body.ops[4].operands[1]",
     "compose: expected a scalar (no extents), found f64[2]"},
    {"composed_scalar",
     [](auto& k) {
       op(k, 4).mutable_type()->clear_extents();
       op(k, 4).mutable_operands()->RemoveLast();
     },
     "body.ops[4]", "compose: expected the type of a vector or matrix, found f64"},
    {"composed_of_another_type", [](auto& k) { op(k, 4).mutable_type()->set_scalar(v1::I64); }, "body.ops[4]",
     "compose: expected a type of f64 (the type of the operands), found i64[2]"},
    {"composed_without_type", [](auto& k) { op(k, 4).clear_type(); }, "body.ops[4].type",
     "compose: expected this field, found nothing"},
    {"component_outside", [](auto& k) { op(k, 5).set_component(2); }, "body.ops[5]",
     "extract: expected a component below 2 of f64[2], found 2"},
    {"component_of_a_scalar", [](auto& k) { op(k, 5).set_operands(0, 1); }, "body.ops[5].operands[0]",
     "extract: expected a vector or matrix, found f64"},
    // Integers.
    {"integer_operation_on_reals", [](auto& k) { op(k, 6).set_operands(0, 1); }, "body.ops[6].operands[0]",
     "floor_div: expected integers, found f64"},
    {"operand_of_a_position",
     [](auto& k) {
       op(k, 6).set_code(v1::SAMPLE_INDEX);
       op(k, 6).mutable_operands()->RemoveLast();
     },
     "body.ops[6]", "sample_index: expected 0 operands, found 1"},
};
INSTANTIATE_TEST_SUITE_P(Verify, MalformedStructure, testing::ValuesIn(cases),
                         [](const auto& test) { return test.param.name; });

TEST(VerifyStructure, RefusesFieldsItDoesNotKnow) {
  const std::function<google::protobuf::Message*(v1::Kernel&)> parts[] = {
      [](v1::Kernel& k) { return table(k).mutable_axes(0); },
      [](v1::Kernel& k) { return op(k, 1).mutable_dispatch(); },
      [](v1::Kernel& k) { return region(k, 0, 1).mutable_arguments(0); },
  };
  for (const auto& part : parts) {
    v1::Kernel message = valid();
    google::protobuf::Message& target = *part(message);
    target.GetReflection()->MutableUnknownFields(&target)->AddVarint(1000, 1);
    EXPECT_THAT(verify(message).status().message(), HasSubstr("found field number 1000"));
  }
}

// ---- limits ----

void expect_limit(const v1::Kernel& message, const Limits& limits, const std::string& path,
                  const char* text) {
  const Status status = verify(message, limits).status();
  EXPECT_EQ(status.reason(), Reason::kernel_limit) << status.to_string();
  EXPECT_THAT(status.message(), HasSubstr(": " + path + ": "));
  EXPECT_THAT(status.message(), HasSubstr(text));
}

TEST(StructureLimits, BoundTheTripsOfALoop) {
  v1::Kernel message = valid();
  op(message, 0).set_max_trips(std::uint64_t{1} << 40);
  EXPECT_TRUE(verify(message).ok());
  op(message, 0).set_max_trips((std::uint64_t{1} << 40) + 1);
  expect_limit(
      message, {}, "body.ops[0].max_trips",
      "expected at most 1099511627776 trips of a loop (limit kernel_loop_trips), found 1099511627777");
  op(message, 0).set_max_trips(~std::uint64_t{0});
  expect_limit(message, {}, "body.ops[0].max_trips", "kernel_loop_trips");
}

TEST(StructureLimits, BoundTheElementsOfATableWithoutOverflow) {
  v1::Kernel message = valid();
  table(message).mutable_axes(0)->set_extent(1u << 16);
  table(message).mutable_axes(1)->set_extent(1u << 15);
  EXPECT_TRUE(verify(message).ok());
  table(message).mutable_axes(1)->set_extent((1u << 15) + 1);
  expect_limit(
      message, {}, "arguments[2].axes",
      "expected at most 2147483648 elements of a table (limit kernel_table_elements), found 2147549184");
  for (auto& axis : *table(message).mutable_axes()) axis.set_extent(0xffffffffu);
  expect_limit(message, {}, "arguments[2].axes", "kernel_table_elements");
  expect_limit(message, Limits{.table_elements = 0xffffffffu}, "arguments[2].axes",
               "found 18446744065119617025");
}

TEST(StructureLimits, BoundTheRegionsOfASwitch) {
  v1::Kernel message = valid();
  while (op(message, 1).regions_size() < 64) *op(message, 1).add_regions() = region(message, 1, 0);
  EXPECT_TRUE(verify(message).ok());
  *op(message, 1).add_regions() = region(message, 1, 0);
  expect_limit(message, {}, "body.ops[1].regions",
               "expected at most 64 regions of a switch (limit kernel_switch_regions), found 65");
  expect_limit(valid(), Limits{.switch_regions = 2}, "body.ops[1].regions", "found 3");
}

// The two ops inside the loop, the loop for two values, three cases of one value, a gather along two axes and
// the four ops that are left.
TEST(StructureLimits, CountWhatStructureGivesAndGathersIndex) {
  constexpr std::uint32_t ops = 2 + 2 + 3 + 2 + 4;
  EXPECT_TRUE(verify(valid(), Limits{.ops = ops}).ok());
  expect_limit(valid(), Limits{.ops = ops - 1}, "body.ops[2]", "kernel_ops");
}

TEST(StructureLimits, BoundTheDepthOfLoopsAndSwitches) {
  EXPECT_TRUE(verify(valid(), Limits{.depth = 1}).ok());
  expect_limit(valid(), Limits{.depth = 0}, "body.ops[0]", "kernel_depth");
  v1::Kernel message = valid();
  message.mutable_body()->mutable_ops()->DeleteSubrange(2, 5);
  message.mutable_body()->mutable_ops()->DeleteSubrange(0, 1);
  op(message, 0).set_operands(0, 0);
  region(message, 0, 1).set_yields(0, 1);
  message.mutable_body()->set_yields(0, 2);
  EXPECT_TRUE(verify(message).ok()) << verify(message).status().to_string();
  expect_limit(message, Limits{.depth = 0}, "body.ops[0]", "kernel_depth");
}

}  // namespace
}  // namespace eagle::kernel
