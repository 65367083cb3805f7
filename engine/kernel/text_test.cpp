#include "engine/kernel/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "engine/kernel/builder.h"
#include "engine/kernel/random_kernel.h"

namespace eagle::kernel {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* example = R"(kernel @oscillator real=f64
  mutable %0 x: f64
  param %1 dt: f64
  terminated %2 done: bool
  output y: f64
{
  %3 = mul %1, %0 : f64
  %4 = constant 0x1.8p+1 : f64
  %5 = lt %3, %4 : bool
  %8, %9 = if %5 -> f64, bool {
    %6 = add %3, %4 : f64
    yield %6, %5
  } else {
    %7 = sub %3, %4 : f64
    yield %7, %2
  }
  yield %8, %9, %3
}
)";

TEST(Text, PrintsWhatItReads) {
  const StatusOr<Kernel> kernel = from_text(example);
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  EXPECT_EQ(kernel->body.ops[1].bits, std::bit_cast<std::uint64_t>(3.0));
  EXPECT_EQ(to_text(*kernel), example);
}

constexpr const char* structured_example = R"(kernel @search real=f64
  read %0 x: f64
  table curve[row: 4, "two words": 16]: f64[2]
  table steps: i64
  output y: f64
{
  %1 = sample_index : i64
  %10, %11 = while %1, %0 max 16 -> i64, f64 (%2, %3) {
    %4 = gather @curve[%2, %1] : f64[2]
    %5 = extract %4[0] : f64
    %6 = lt %5, %3 : bool
    yield %6
  } do (%7, %8) {
    %9 = gather @steps[%7] : i64
    yield %9, %0
  }
  while max 1099511627776 {
    %12 = constant true : bool
    yield %12
  } do {
    yield
  }
  %15 = switch %10 dispatch @"the group" segmented -> f64 case 0 {
    yield %0
  } case 1 {
    %13 = compose %0, %11 : f64[2]
    %14 = extract %13[1] : f64
    yield %14
  }
  switch %1 case 0 {
    yield
  }
  yield %15
}
)";

TEST(Text, PrintsTheStructureThatItReads) {
  const StatusOr<Kernel> kernel = from_text(structured_example);
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  EXPECT_EQ(kernel->body.ops[1].max_trips, 16u);
  EXPECT_EQ(kernel->body.ops[3].dispatch, (Dispatch{"the group", DispatchPolicy::segmented}));
  EXPECT_EQ(kernel->arguments[1].axes, (std::vector<Axis>{{"row", 4}, {"two words", 16}}));
  EXPECT_EQ(to_text(*kernel), structured_example);
}

TEST(Text, ReadsBackToTheSameKernel) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Kernel kernel = random_kernel(seed);
    const StatusOr<Kernel> again = from_text(to_text(kernel));
    ASSERT_TRUE(again.ok()) << again.status().to_string() << "\n" << to_text(kernel);
    EXPECT_EQ(*again, without_locations(kernel)) << to_text(kernel);
  }
}

TEST(Text, KeepsAnyName) {
  for (const std::string name :
       {"two words", "q\"u\\o'te", "line\nend", "\u00fcmlaut \U0001f600", "yield", "a:b", "\x01"}) {
    KernelBuilder b(name);
    const auto x = b.scalar(name);
    b.table(name + "?", Type{Scalar::f64}, {{name, 3}});
    const auto i = b.sample_index();
    b.gather(name + "?", {i});
    b.begin_switch(i, Dispatch{name, DispatchPolicy::predicated});
    b.end_switch({});
    b.output(name + "!", x);
    const StatusOr<Kernel> kernel = b.finish();
    ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
    const StatusOr<Kernel> again = from_text(to_text(*kernel));
    ASSERT_TRUE(again.ok()) << again.status().to_string() << "\n" << to_text(*kernel);
    EXPECT_EQ(*again, *kernel);
  }
}

std::uint64_t literal(const std::string& text, const std::string& type) {
  const StatusOr<Kernel> kernel =
      from_text("kernel @k real=f64 read %0 x: f64 { %1 = constant " + text + " : " + type + " yield }");
  EXPECT_TRUE(kernel.ok()) << text << ": " << kernel.status().to_string();
  return kernel.ok() ? kernel->body.ops[0].bits : ~std::uint64_t{0};
}

TEST(Text, ReadsDecimalAndHexadecimalReals) {
  EXPECT_EQ(literal("0.1", "f64"), std::bit_cast<std::uint64_t>(0.1));
  EXPECT_EQ(literal("0.1", "f32"), std::bit_cast<std::uint32_t>(0.1f));
  EXPECT_EQ(literal("-1e-3", "f64"), std::bit_cast<std::uint64_t>(-1e-3));
  EXPECT_EQ(literal("-0x0p+0", "f64"), 0x8000000000000000u);
  EXPECT_EQ(literal("0x0.0000000000001p-1022", "f64"), 1u);
  EXPECT_EQ(literal("-inf", "f32"), 0xff800000u);
  EXPECT_EQ(literal("nan", "f32"), 0x7fc00000u);
}

TEST(Text, ReadsTheEndsOfTheIntegers) {
  EXPECT_EQ(literal("-9223372036854775808", "i64"), 0x8000000000000000u);
  EXPECT_EQ(literal("-1", "i32"), 0xffffffffu);
  EXPECT_EQ(literal("true", "bool"), 1u);
}

struct Case {
  const char* name;
  const char* text;
  const char* position;
  const char* message;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class BadText : public testing::TestWithParam<Case> {};

TEST_P(BadText, IsRefusedWithLineAndColumn) {
  const StatusOr<Kernel> kernel = from_text(GetParam().text);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().reason(), Reason::malformed_kernel);
  EXPECT_THAT(kernel.status().message(), StartsWith(std::string(GetParam().position) + ": "));
  EXPECT_THAT(kernel.status().message(), HasSubstr(GetParam().message));
}

#define HEAD "kernel @k real=f64\n read %0 x: f64\n output y: f64\n{\n"
const Case cases[] = {
    {"empty", "", "1:1", "expected 'kernel', found the end of the text"},
    {"not_a_kernel", " graph", "1:2", "expected 'kernel', found 'graph'"},
    {"bad_role", "kernel @k real=f64\n  reads %0 x: f64", "2:3", "expected a role"},
    {"bad_type", "kernel @k real=f64\n  read %0 x: f16", "2:14", "expected a scalar type"},
    {"vector_real", "kernel @k real=f64[3]", "1:19", "expected a role"},
    {"argument_number", "kernel @k real=f64 read %1 x: f64", "1:25", "expected %0 (values are numbered"},
    {"unknown_opcode", HEAD "  %1 = plus %0, %0 : f64", "5:8", "expected an opcode, found 'plus'"},
    {"result_number", HEAD "  %2 = add %0, %0 : f64", "5:3", "expected %1 (values are numbered"},
    {"number_too_large", HEAD "  %1 = add %0, %99999999999 : f64", "5:16",
     "expected a value, like %3, found '%99999999999'"},
    {"no_result", HEAD "  add %0, %0 : f64", "5:3", "expected one result before add"},
    {"stated_type", HEAD "  %1 = lt %0, %0 : f64 yield %0 }", "5:20",
     "expected bool (what the op gives), found f64"},
    {"verifier", HEAD "\n  %1 = lt %0, %0 : bool\n  %2 = add %0, %1 : f64 yield %2 }", "7:3",
     "body.ops[1].operands[1]: add: expected reals or integers, found bool"},
    {"verifier_argument", "kernel @k real=f64\n  read %0 x: f32 { yield }", "2:3", "arguments[0].type"},
    {"verifier_whole", HEAD "yield }", "1:1", "body.yields: expected 1 values"},
    {"real_out_of_range", HEAD " %1 = constant 1e999 : f64", "5:16",
     "expected a literal in the range of f64, found '1e999'"},
    {"two_signs", HEAD " %1 = constant --1.0 : f64", "5:16", "expected a literal, found '-'"},
    {"hexadecimal_nan", HEAD " %1 = constant 0xnan : f64", "5:16",
     "expected a literal in the range of f64, found '0xnan'"},
    {"integer_out_of_range", HEAD " %1 = constant 2147483648 : i32", "5:16",
     "expected a literal in the range of i32"},
    {"not_a_bool", HEAD " %1 = constant 1 : bool", "5:16", "expected a literal in the range of bool"},
    {"if_types", HEAD " %1 = if %0 -> f64, f64 {", "5:25", "expected as many types as results (1)"},
    {"if_results", HEAD " %1 = if %0 -> f64 { yield } else { yield } yield %0 }", "5:2",
     "expected 0 results"},
    {"no_else", HEAD " if %0 { yield } yield %0 }", "5:18", "expected 'else', found 'yield'"},
    {"no_yield", HEAD " %1 = add %0, %0 : f64 }", "5:24", "expected an op or 'yield', found '}'"},
    {"trailing", HEAD " yield %0 } more", "5:13", "expected the end of the text, found 'more'"},
    {"open_string", "kernel @\"k real=f64", "1:9", "expected a name"},
    {"bad_escape", "kernel @\"\\n\" real=f64", "1:9", "expected a string with no other escapes"},
    {"three_extents", "kernel @k real=f64 read %0 x: f64[1,2,3]", "1:39", "expected ']'"},
    {"loop_without_bound", HEAD " while { yield %0 } do { yield }", "5:8", "expected 'max', found '{'"},
    {"loop_bound", HEAD " while max -1 {", "5:12",
     "expected the most trips of the loop (at most 18446744073709551615)"},
    {"loop_without_body", HEAD " while max 1 { yield %0 } else { yield }", "5:27",
     "expected 'do', found 'else'"},
    {"loop_without_carried", HEAD " %1 = while %0 max 1 -> f64 { yield %0 }", "5:29",
     "expected '(', found '{'"},
    {"carried_number", HEAD " %1 = while %0 max 1 -> f64 (%0) {", "5:30", "expected %1 (values are numbered"},
    {"carried_too_few", HEAD " %1, %2 = while %0, %0 max 1 -> f64, f64 (%1) {", "5:45",
     "expected ',', found ')'"},
    {"carried_not_a_value", HEAD " %1 = while %0 max 1 -> f64 (x) {", "5:30",
     "expected a carried value, like %3"},
    {"loop_results", HEAD " while %0 max 1 { yield %0 } do { yield } yield %0 }", "5:2",
     "expected 1 results (what the loop carries), found 0"},
    {"switch_results", HEAD " %1 = switch %0 -> f64 case 0 { yield } yield %1 }", "5:2",
     "expected 0 results (what the regions yield), found 1"},
    {"switch_without_cases", HEAD " switch %0 { yield } yield %0 }", "5:12", "expected 'case', found '{'"},
    {"case_number", HEAD " switch %0 case 0 { yield } case 2 { yield } yield %0 }", "5:34",
     "expected '1', found '2'"},
    {"dispatch_policy", HEAD " switch %0 dispatch @a fast case 0 { yield } yield %0 }", "5:24",
     "expected a dispatch policy (auto, switch, segmented, predicated), found 'fast'"},
    {"no_such_table", HEAD " %1 = gather @t[%0] : f64 yield %0 }", "5:15",
     "expected the name of a table or accumulator, found 't'"},
    {"not_a_table", HEAD " %1 = gather @x[%0] : f64 yield %0 }", "5:2",
     "gather: expected a table argument, found argument 0, a read one"},
    {"axis_extent", "kernel @k real=f64 table t[a: 4294967296]: f64", "1:31",
     "expected an extent (at most 4294967295)"},
    {"axis_without_name", "kernel @k real=f64 table t[: 4]: f64", "1:28", "expected a name, found ':'"},
    {"table_with_value", "kernel @k real=f64 table %0 t: f64", "1:26", "expected a name, found '%0'"},
    {"component_number", HEAD " %1 = extract %0[x] : f64 yield %0 }", "5:18",
     "expected the number of a component"},
    {"odd_character", "kernel @k real=f64 ;", "1:20", "found ';'"},
};
INSTANTIATE_TEST_SUITE_P(Text, BadText, testing::ValuesIn(cases),
                         [](const auto& test) { return test.param.name; });

TEST(Text, SkipsComments) {
  EXPECT_TRUE(from_text("// a\nkernel @k real=f64 // b\nread %0 x: f64 { yield } // c").ok());
}

TEST(Text, BoundsItsDepth) {
  std::string text = "kernel @k real=f64 read %0 c: bool {";
  for (int i = 0; i < 100'000; ++i) text += " if %0 {";
  const Status status = from_text(text).status();
  EXPECT_EQ(status.reason(), Reason::kernel_limit);
  EXPECT_THAT(status.message(), HasSubstr("expected at most 32 levels of nested regions"));
}

}  // namespace
}  // namespace eagle::kernel
