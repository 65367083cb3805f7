#include "engine/graph/param.h"

#include <gmock/gmock.h>

namespace eagle::graph {
namespace {

using kernel::Scalar;
using ::testing::HasSubstr;

StatusOr<std::uint64_t> bits_of(const Number& number, Scalar scalar) {
  kernel::Argument argument;
  argument.role = kernel::Role::param;
  argument.type.scalar = scalar;
  return param_bits(number, argument, "update: Param 'k'");
}

void expect_bits(std::int64_t number, Scalar scalar, std::uint64_t bits) {
  const StatusOr<std::uint64_t> found = bits_of(number, scalar);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(*found, bits);
}

void expect_outside(std::int64_t number, Scalar scalar, const std::string& range) {
  const Status status = bits_of(number, scalar).status();
  EXPECT_EQ(status.reason(), Reason::bad_value) << status.to_string();
  EXPECT_EQ(status.message(),
            "update: Param 'k': expected an integer from " + range + ", found " + std::to_string(number));
}

TEST(ParamBits, AnIntegerFitsItsType) {
  const std::string range = "-2147483648 to 2147483647";
  expect_bits(2'147'483'647, Scalar::i32, 0x7fffffffU);
  expect_bits(-2'147'483'648, Scalar::i32, 0x80000000U);
  expect_outside(2'147'483'648, Scalar::i32, range);
  expect_outside(-2'147'483'649, Scalar::i32, range);
  expect_bits(-2'147'483'649, Scalar::i64, 0xffffffff7fffffffU);
}

TEST(ParamBits, ATruthValueIsZeroOrOne) {
  expect_bits(0, Scalar::boolean, 0);
  expect_bits(1, Scalar::boolean, 1);
  expect_outside(2, Scalar::boolean, "0 to 1");
  expect_outside(-1, Scalar::boolean, "0 to 1");
}

TEST(ParamBits, ARealNumberIsForRealsAlone) {
  for (const Scalar scalar : {Scalar::i64, Scalar::i32, Scalar::boolean}) {
    const Status status = bits_of(2.0, scalar).status();
    EXPECT_EQ(status.reason(), Reason::wrong_dtype);
    EXPECT_THAT(status.message(), HasSubstr("pass an int"));
  }
  EXPECT_EQ(*bits_of(1.0, Scalar::f64), 0x3ff0000000000000U);
  EXPECT_EQ(*bits_of(1.0, Scalar::f32), 0x3f800000U);
  expect_bits(1, Scalar::f32, 0x3f800000U);
}

}  // namespace
}  // namespace eagle::graph
