#include "engine/kernel/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/builder.h"
#include "engine/kernel/wire.h"

namespace eagle::kernel {
namespace {

using testing::HasSubstr;

// read x (%0), mutable s (%1), param p (%2), terminated done (%3), output y.
// %4 = add x, p; %5 = lt %4, s; if %5 { %6 = mul; yield %6 } else { yield x } -> %7; yields s, done, y.
v1::Kernel valid() {
  KernelBuilder b("k");
  const auto x = b.scalar("x");
  const auto s = b.state("s", Type{Scalar::f64});
  const auto p = b.param("p");
  b.terminated("done");
  const auto sum = b.add(x, p);
  const auto less = b.lt(sum, s);
  b.begin_if(less);
  b.otherwise({b.mul(sum, s)});
  const auto results = b.end_if({x});
  b.commit("s", results[0]);
  b.commit("done", less);
  b.output("y", sum);
  const StatusOr<Kernel> kernel = b.finish();
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  v1::Kernel message;
  to_message(*kernel, message);
  return message;
}

v1::Op& op(v1::Kernel& kernel, int i) { return *kernel.mutable_body()->mutable_ops(i); }

Status refusal(const v1::Kernel& message, const Limits& limits = {}) {
  return verify(message, limits).status();
}

void set_scalar(v1::Type& type, v1::ScalarType scalar, std::initializer_list<std::uint32_t> extents = {}) {
  type.Clear();
  type.set_scalar(scalar);
  for (const std::uint32_t extent : extents) type.add_extents(extent);
}

TEST(Verify, AcceptsAndInfersTypes) {
  const StatusOr<Kernel> kernel = verify(valid());
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  ASSERT_EQ(kernel->value_types.size(), 8u);
  EXPECT_EQ(kernel->value_types[4], Type{Scalar::f64});
  EXPECT_EQ(kernel->value_types[5], Type{Scalar::boolean});
  EXPECT_EQ(kernel->body.ops[2].results, std::vector<ValueId>{7});
  EXPECT_EQ(kernel->body.yields, (std::vector<ValueId>{7, 5, 4}));
}

struct Case {
  const char* name;
  std::function<void(v1::Kernel&)> damage;
  const char* path;  // with what comes before it
  const char* expected;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Malformed : public testing::TestWithParam<Case> {};

TEST_P(Malformed, IsRefusedWithThePathAndWhatWasExpected) {
  v1::Kernel message = valid();
  GetParam().damage(message);
  const Status status = refusal(message);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.reason(), Reason::malformed_kernel);
  EXPECT_THAT(status.message(), HasSubstr(std::string(": ") + GetParam().path + ": "));
  EXPECT_THAT(status.message(), HasSubstr(GetParam().expected));
}

const Case cases[] = {
    {"no_name", [](auto& k) { k.clear_name(); }, "name", "expected a name, found an empty one"},
    {"name_not_utf8", [](auto& k) { k.set_name("\xff"); }, "name", R"(expected UTF-8, found '\xff')"},
    {"no_real", [](auto& k) { k.clear_real(); }, "real", "expected F64 or F32, found none"},
    {"integer_real", [](auto& k) { k.set_real(v1::I64); }, "real", "expected F64 or F32, found i64"},
    {"unknown_real", [](auto& k) { k.set_real(static_cast<v1::ScalarType>(99)); }, "real",
     "found the unknown number 99"},
    {"no_role", [](auto& k) { k.mutable_arguments(1)->clear_role(); }, "arguments[1].role",
     "expected a role, found none"},
    {"unknown_role", [](auto& k) { k.mutable_arguments(1)->set_role(static_cast<v1::Role>(77)); },
     "arguments[1].role", "found the unknown number 77"},
    {"no_type", [](auto& k) { k.mutable_arguments(0)->clear_type(); }, "arguments[0].type.scalar",
     "found none"},
    {"same_name", [](auto& k) { k.mutable_arguments(2)->set_name("x"); }, "arguments[2].name",
     "found 'x' for a second time"},
    {"empty_argument_name", [](auto& k) { k.mutable_arguments(2)->clear_name(); }, "arguments[2].name",
     "found an empty one"},
    {"i32_plane", [](auto& k) { set_scalar(*k.mutable_arguments(0)->mutable_type(), v1::I32); },
     "arguments[0].type",
     "expected elements of f64 (the kernel's real type), i64 or bool for the read argument 'x', found i32"},
    {"other_real", [](auto& k) { set_scalar(*k.mutable_arguments(0)->mutable_type(), v1::F32); },
     "arguments[0].type", "found f32"},
    {"vector_param", [](auto& k) { set_scalar(*k.mutable_arguments(2)->mutable_type(), v1::F64, {3}); },
     "arguments[2].type", "expected a scalar (no extents) for the param argument 'p', found f64[3]"},
    {"real_mask", [](auto& k) { set_scalar(*k.mutable_arguments(3)->mutable_type(), v1::F64); },
     "arguments[3].type", "expected bool for the terminated argument 'done', found f64"},
    {"vector_mask", [](auto& k) { set_scalar(*k.mutable_arguments(3)->mutable_type(), v1::BOOL, {1}); },
     "arguments[3].type", "found bool[1]"},
    {"two_masks",
     [](auto& k) {
       auto& extra = *k.add_arguments();
       extra.set_name("again");
       extra.set_role(v1::ROLE_TERMINATED);
       set_scalar(*extra.mutable_type(), v1::BOOL);
     },
     "arguments[5].role", "expected at most one terminated argument"},
    {"no_plane",
     [](auto& k) {
       k.mutable_arguments()->DeleteSubrange(3, 2);
       k.mutable_arguments()->DeleteSubrange(0, 2);
     },
     "arguments", "expected at least one argument with a plane"},
    {"axes_of_a_plane",
     [](auto& k) {
       auto& axis = *k.mutable_arguments(0)->add_axes();
       axis.set_name("row");
       axis.set_extent(2);
     },
     "arguments[0].axes", "expected none (only tables and accumulators have axes), found 1"},
    {"three_extents",
     [](auto& k) { set_scalar(*k.mutable_arguments(0)->mutable_type(), v1::F64, {1, 1, 1}); },
     "arguments[0].type.extents", "expected at most 2"},
    {"zero_extent", [](auto& k) { set_scalar(*k.mutable_arguments(0)->mutable_type(), v1::F64, {2, 0}); },
     "arguments[0].type.extents[1]", "expected at least 1, found 0"},
    {"no_body", [](auto& k) { k.clear_body(); }, "body.yields", "expected 3 values"},
    {"body_arguments", [](auto& k) { k.mutable_body()->add_arguments(); }, "body.arguments", "expected none"},
    {"missing_yield", [](auto& k) { k.mutable_body()->mutable_yields()->RemoveLast(); }, "body.yields",
     "expected 3 values (one for each mutable, output, terminated and reduce argument), found 2"},
    {"yield_type", [](auto& k) { k.mutable_body()->set_yields(1, 4); }, "body.yields[1]",
     "expected bool (the type of argument 'done'), found f64"},
    {"yield_undefined", [](auto& k) { k.mutable_body()->set_yields(0, 8); }, "body.yields[0]",
     "expected a value that is defined before this use (so far there are 8), found %8"},
    {"yield_of_ended_region", [](auto& k) { k.mutable_body()->set_yields(0, 6); }, "body.yields[0]",
     "found %6 of a region that has ended"},
    {"no_code", [](auto& k) { op(k, 0).clear_code(); }, "body.ops[0].code", "expected an opcode, found none"},
    {"unknown_code", [](auto& k) { op(k, 0).set_code(static_cast<v1::Opcode>(9)); }, "body.ops[0].code",
     "found the unknown number 9"},
    {"negative_code", [](auto& k) { op(k, 0).set_code(static_cast<v1::Opcode>(-1)); }, "body.ops[0].code",
     "found the unknown number -1"},
    {"operand_of_itself", [](auto& k) { op(k, 0).set_operands(0, 4); }, "body.ops[0].operands[0]",
     "found %4"},
    {"operand_too_large", [](auto& k) { op(k, 0).set_operands(0, 0xffffffffu); }, "body.ops[0].operands[0]",
     "found %4294967295"},
    {"operand_missing", [](auto& k) { op(k, 0).mutable_operands()->RemoveLast(); }, "body.ops[0]",
     "add: expected 2 operands, found 1"},
    {"operand_extra", [](auto& k) { op(k, 0).add_operands(0); }, "body.ops[0]",
     "add: expected 2 operands, found 3"},
    {"operand_type", [](auto& k) { op(k, 0).set_operands(1, 3); }, "body.ops[0].operands[1]",
     "expected reals or integers, found bool"},
    {"operand_types_differ", [](auto& k) { set_scalar(*k.mutable_arguments(2)->mutable_type(), v1::I64); },
     "body.ops[0].operands[1]", "expected f64 (the type of operand 0), found i64"},
    {"constant_on_add", [](auto& k) { op(k, 0).mutable_constant()->set_f64(1); }, "body.ops[0].constant",
     "add: expected nothing here"},
    {"type_on_add", [](auto& k) { set_scalar(*op(k, 0).mutable_type(), v1::F64); }, "body.ops[0].type",
     "add: expected nothing here"},
    {"argument_on_add", [](auto& k) { op(k, 0).set_argument(1); }, "body.ops[0].argument",
     "add: expected nothing here"},
    {"max_trips_on_add", [](auto& k) { op(k, 0).set_max_trips(1); }, "body.ops[0].max_trips",
     "add: expected nothing here"},
    {"component_on_add", [](auto& k) { op(k, 0).set_component(1); }, "body.ops[0].component",
     "add: expected nothing here"},
    {"dispatch_on_if", [](auto& k) { op(k, 2).mutable_dispatch(); }, "body.ops[2].dispatch",
     "if: expected nothing here"},
    {"region_on_add", [](auto& k) { op(k, 0).add_regions(); }, "body.ops[0].regions",
     "add: expected 0 regions, found 1"},
    {"one_region", [](auto& k) { op(k, 2).mutable_regions()->RemoveLast(); }, "body.ops[2].regions",
     "if: expected 2 regions, found 1"},
    {"real_condition", [](auto& k) { op(k, 2).set_operands(0, 4); }, "body.ops[2].operands[0]",
     "if: expected bool (the condition), found f64"},
    {"sides_yield_differently", [](auto& k) { op(k, 2).mutable_regions(1)->set_yields(0, 5); },
     "body.ops[2].regions[1].yields[0]", "expected f64 (as the then side), found bool"},
    {"side_yields_more", [](auto& k) { op(k, 2).mutable_regions(1)->add_yields(0); },
     "body.ops[2].regions[1].yields", "expected 1 yield (as the then side), found 2"},
    {"value_of_the_other_side", [](auto& k) { op(k, 2).mutable_regions(1)->set_yields(0, 6); },
     "body.ops[2].regions[1].yields[0]", "of a region that has ended"},
    {"region_arguments", [](auto& k) { op(k, 2).mutable_regions(0)->add_arguments(); },
     "body.ops[2].regions[0].arguments", "expected none"},
    {"nested_operand", [](auto& k) { op(k, 2).mutable_regions(0)->mutable_ops(0)->set_operands(1, 5); },
     "body.ops[2].regions[0].ops[0].operands[1]", "mul: expected reals or integers, found bool"},
    {"location_of_no_file", [](auto& k) { op(k, 0).mutable_location()->set_line(7); },
     "body.ops[0].location.file", "expected an index below 0 (the number of source files), found 0"},
    {"source_file_without_name", [](auto& k) { k.add_source_files(""); }, "source_files[0]",
     "found an empty one"},
};
INSTANTIATE_TEST_SUITE_P(Verify, Malformed, testing::ValuesIn(cases),
                         [](const auto& test) { return test.param.name; });

TEST(Verify, NamesTheKernelInItsErrors) {
  v1::Kernel message = valid();
  op(message, 0).set_operands(1, 3);
  EXPECT_EQ(refusal(message).message(),
            "kernel 'k': body.ops[0].operands[1]: add: expected reals or integers, found bool");
}

// A constant, as the only op before the outputs.
v1::Kernel with_constant(const std::function<void(v1::Op&)>& change) {
  KernelBuilder b("k");
  b.declare_output("y", Type{Scalar::f64});
  b.commit("y", b.real(2.5));
  v1::Kernel message;
  to_message(*b.finish(), message);
  change(op(message, 0));
  return message;
}

TEST(Verify, AConstantNeedsAValueOfItsType) {
  EXPECT_THAT(refusal(with_constant([](v1::Op& c) { c.mutable_constant()->set_i64(1); })).message(),
              HasSubstr("body.ops[0].constant: expected a value of f64 (the type in `type`), found i64"));
  EXPECT_THAT(refusal(with_constant([](v1::Op& c) { c.mutable_constant()->Clear(); })).message(),
              HasSubstr("found none"));
  EXPECT_THAT(refusal(with_constant([](v1::Op& c) { c.clear_constant(); })).message(),
              HasSubstr("body.ops[0].constant: constant: expected this field, found nothing"));
  EXPECT_THAT(refusal(with_constant([](v1::Op& c) { c.clear_type(); })).message(),
              HasSubstr("body.ops[0].type: constant: expected this field, found nothing"));
  EXPECT_THAT(refusal(with_constant([](v1::Op& c) { c.mutable_type()->add_extents(2); })).message(),
              HasSubstr("constant: expected a scalar type (no extents), found f64[2]"));
  EXPECT_THAT(refusal(with_constant([](v1::Op& c) { c.add_operands(0); })).message(),
              HasSubstr("expected a value that is defined before this use (so far there are 0), found %0"));
}

TEST(Verify, MakesEveryNanTheSame) {
  const auto message = with_constant([](v1::Op& c) { c.mutable_constant()->set_f64(-std::nan("0x123")); });
  const StatusOr<Kernel> kernel = verify(message);
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(kernel->body.ops[0].bits, 0x7ff8000000000000u);
}

// Adds field 1000 to a message, as a newer version might.
void add_unknown(google::protobuf::Message& message) {
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(1000, 1);
}

TEST(Verify, RefusesFieldsItDoesNotKnowAnywhere) {
  const std::function<google::protobuf::Message*(v1::Kernel&)> parts[] = {
      [](v1::Kernel& k) { return &k; },
      [](v1::Kernel& k) { return k.mutable_arguments(0); },
      [](v1::Kernel& k) { return k.mutable_arguments(0)->mutable_type(); },
      [](v1::Kernel& k) { return k.mutable_body(); },
      [](v1::Kernel& k) { return &op(k, 0); },
      [](v1::Kernel& k) { return op(k, 0).mutable_location(); },
      [](v1::Kernel& k) { return op(k, 2).mutable_regions(1); },
      [](v1::Kernel& k) { return op(k, 2).mutable_regions(0)->mutable_ops(0); },
  };
  for (const auto& part : parts) {
    v1::Kernel message = valid();
    add_unknown(*part(message));
    EXPECT_EQ(refusal(message).reason(), Reason::malformed_kernel);
    EXPECT_THAT(refusal(message).message(),
                HasSubstr("expected fields of this version only, found field number 1000"));
  }
  EXPECT_THAT(refusal(with_constant([](v1::Op& c) { add_unknown(*c.mutable_constant()); })).message(),
              HasSubstr("body.ops[0].constant: expected fields of this version only"));
  EXPECT_THAT(refusal(with_constant([](v1::Op& c) { add_unknown(*c.mutable_type()); })).message(),
              HasSubstr("body.ops[0].type: expected fields of this version only"));
}

TEST(Verify, KeepsKnownLocations) {
  v1::Kernel message = valid();
  message.add_source_files("model.py");
  op(message, 0).mutable_location()->set_line(7);
  const StatusOr<Kernel> kernel = verify(message);
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(kernel->body.ops[0].location, (Location{0, 7, 0}));
  EXPECT_EQ(kernel->source_files, std::vector<std::string>{"model.py"});
}

// ---- limits ----

void expect_limit(const v1::Kernel& message, const Limits& limits, const std::string& path,
                  const char* text) {
  const Status status = refusal(message, limits);
  EXPECT_EQ(status.code(), Code::resource_exhausted) << status.to_string();
  EXPECT_EQ(status.reason(), Reason::kernel_limit);
  EXPECT_THAT(status.message(), HasSubstr(": " + path + ": "));
  EXPECT_THAT(status.message(), HasSubstr(text));
}

// A body of ifs inside each other.
v1::Kernel nested(int depth) {
  v1::Kernel message;
  message.set_name("deep");
  message.set_real(v1::F64);
  auto& argument = *message.add_arguments();
  argument.set_name("c");
  argument.set_role(v1::ROLE_READ);
  set_scalar(*argument.mutable_type(), v1::BOOL);
  v1::Region* region = message.mutable_body();
  for (int i = 0; i < depth; ++i) {
    v1::Op& branch = *region->add_ops();
    branch.set_code(v1::IF);
    branch.add_operands(0);
    region = branch.add_regions();
    branch.add_regions();
  }
  return message;
}

TEST(Limits, BoundTheDepth) {
  EXPECT_TRUE(verify(nested(32)).ok());
  std::string path = "body";
  for (int i = 0; i < 32; ++i) path += ".ops[0].regions[0]";
  expect_limit(nested(33), {}, path + ".ops[0]",
               "expected at most 32 levels of nested regions (limit kernel_depth), found 33");
  EXPECT_TRUE(verify(nested(0), Limits{.depth = 0}).ok());
  expect_limit(nested(1), Limits{.depth = 0}, "body.ops[0]", "kernel_depth");
}

TEST(Limits, ADeepKernelStillParses) {
  v1::Kernel again;
  EXPECT_TRUE(again.ParseFromString(nested(32).SerializeAsString()));
}

TEST(Limits, BoundTheOpsNestedOnesIncluded) {
  EXPECT_TRUE(verify(valid(), Limits{.ops = 4}).ok());
  expect_limit(valid(), Limits{.ops = 3}, "body.ops[2].regions[0]",
               "expected at most 3 ops (limit kernel_ops), found 4");
  expect_limit(valid(), Limits{.ops = 2}, "body", "found 3 or more");
}

// An op on vectors of eight is eight ops to a compiler.
TEST(Limits, BoundTheOpsByTheirComponents) {
  KernelBuilder b("wide");
  const auto v = b.vector("v", 8);
  b.output("w", b.add(b.mul(v, v), v));
  v1::Kernel message;
  to_message(*b.finish(), message);
  EXPECT_TRUE(verify(message, Limits{.scalar_ops = 16}).ok());
  expect_limit(message, Limits{.scalar_ops = 15}, "body.ops[1]",
               "expected at most 15 ops on components (limit kernel_scalar_ops), found 16");
}

TEST(Limits, AMillionOpsAreRefusedBeforeOneIsRead) {
  v1::Kernel message = valid();
  v1::Op* const first = message.mutable_body()->mutable_ops(0);
  first->clear_code();  // reading it would be another error
  message.mutable_body()->mutable_ops()->Reserve(1'000'000);
  while (message.body().ops_size() < 1'000'000) *message.mutable_body()->add_ops() = *first;
  expect_limit(message, Limits{}, "body", "expected at most 16384 ops (limit kernel_ops), found 1000000");
}

TEST(Limits, AnIfCountsOnceForEveryValueThatItYields) {
  v1::Kernel message = nested(1);
  for (v1::Region& region : *op(message, 0).mutable_regions()) region.mutable_yields()->Resize(10, 0);
  EXPECT_TRUE(verify(message, Limits{.ops = 10}).ok());
  expect_limit(message, Limits{.ops = 9}, "body.ops[0]", "kernel_ops");
}

TEST(Limits, BoundTheArguments) {
  EXPECT_TRUE(verify(valid(), Limits{.arguments = 5}).ok());
  expect_limit(valid(), Limits{.arguments = 4}, "arguments",
               "expected at most 4 arguments (limit kernel_arguments), found 5");
}

TEST(Limits, BoundTheComponentsWithoutOverflow) {
  v1::Kernel message = nested(0);
  v1::Type& type = *message.mutable_arguments(0)->mutable_type();
  set_scalar(type, v1::F64, {8, 8});
  EXPECT_TRUE(verify(message).ok());
  set_scalar(type, v1::F64, {65});
  expect_limit(message, {}, "arguments[0].type.extents",
               "expected at most 64 components (limit kernel_components), found 65");
  set_scalar(type, v1::F64, {0xffffffffu, 0xffffffffu});
  expect_limit(message, {}, "arguments[0].type.extents", "found 18446744065119617025");
  set_scalar(type, v1::F64, {65536});  // one that a stored extent could not hold, whatever the limit says
  expect_limit(message, Limits{.components = 0xffffffffu}, "arguments[0].type.extents",
               "expected at most 65535");
}

TEST(Limits, BoundTheNames) {
  v1::Kernel message = valid();
  message.mutable_arguments(0)->set_name(std::string(10'240, 'x'));
  EXPECT_TRUE(verify(message).ok());
  message.mutable_arguments(0)->set_name(std::string(10'241, 'x'));
  expect_limit(message, {}, "arguments[0].name",
               "expected at most 10240 bytes of a name (limit kernel_name_bytes), found 10241");
}

}  // namespace
}  // namespace eagle::kernel
