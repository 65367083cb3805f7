// Integer operations; what reals do is seen through whole kernels in interpret_test.cpp.
#include "engine/kernel/scalar_ops.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "engine/kernel/random_kernel.h"

namespace eagle::kernel {
namespace {

template <typename Integer>
constexpr Scalar scalar = sizeof(Integer) == 8 ? Scalar::i64 : Scalar::i32;

template <typename Integer>
std::uint64_t bits(Integer value) {
  return static_cast<std::make_unsigned_t<Integer>>(value);
}

template <typename Integer>
Integer apply_to(Opcode code, Integer a, Integer b) {
  const std::uint64_t result = apply(code, scalar<Integer>, scalar<Integer>, bits(a), bits(b));
  EXPECT_EQ(result, bits(static_cast<Integer>(result))) << "not zero-extended";
  return static_cast<Integer>(result);
}

template <typename Integer>
class Integers : public testing::Test {};
using Types = testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(Integers, Types);

// Python's own answers.
TYPED_TEST(Integers, DivideAsPythonDoes) {
  using T = TypeParam;
  struct Row {
    T a, b, quotient, remainder;
  };
  for (const Row& row : {Row{7, 2, 3, 1}, Row{-7, 2, -4, 1}, Row{7, -2, -4, -1}, Row{-7, -2, 3, -1},
                         Row{6, 3, 2, 0}, Row{-6, 3, -2, 0}, Row{6, -3, -2, 0}, Row{0, 5, 0, 0},
                         Row{1, 100, 0, 1}, Row{-1, 100, -1, 99}, Row{1, -100, -1, -99}}) {
    EXPECT_EQ(apply_to<T>(Opcode::floor_div, row.a, row.b), row.quotient) << row.a << " // " << row.b;
    EXPECT_EQ(apply_to<T>(Opcode::modulo, row.a, row.b), row.remainder) << row.a << " % " << row.b;
  }
}

TYPED_TEST(Integers, DivideByZeroGivesZeroAndTheLeastByMinusOneWraps) {
  using T = TypeParam;
  constexpr T least = std::numeric_limits<T>::min();
  constexpr T most = std::numeric_limits<T>::max();
  for (const T a : {T{0}, T{5}, T{-5}, least, most}) {
    EXPECT_EQ(apply_to<T>(Opcode::floor_div, a, 0), 0);
    EXPECT_EQ(apply_to<T>(Opcode::modulo, a, 0), 0);
  }
  EXPECT_EQ(apply_to<T>(Opcode::floor_div, least, -1), least);
  EXPECT_EQ(apply_to<T>(Opcode::modulo, least, -1), 0);
  EXPECT_EQ(apply_to<T>(Opcode::floor_div, most, -1), -most);
  EXPECT_EQ(apply_to<T>(Opcode::floor_div, least, most), -2);
  EXPECT_EQ(apply_to<T>(Opcode::modulo, least, most), most - 1);
}

// q b + r = a, and r lies between 0 and b.
TYPED_TEST(Integers, QuotientAndRemainderFitTogether) {
  using T = TypeParam;
  constexpr std::uint64_t seed = 4711;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int i = 0; i < 10'000; ++i) {
    const T a = static_cast<T>(random_bits(scalar<T>, random));
    const T b = static_cast<T>(random_bits(scalar<T>, random));
    if (b == 0 || b == -1) continue;
    const T quotient = apply_to<T>(Opcode::floor_div, a, b);
    const T remainder = apply_to<T>(Opcode::modulo, a, b);
    EXPECT_EQ(bits<T>(static_cast<T>(bits(quotient) * bits(b) + bits(remainder))), bits(a)) << a << ", " << b;
    EXPECT_TRUE(b > 0 ? remainder >= 0 && remainder < b : remainder <= 0 && remainder > b) << a << ", " << b;
  }
}

TYPED_TEST(Integers, ShiftCountsOutsideTheTypeGiveZeroOrTheSign) {
  using T = TypeParam;
  constexpr T width = sizeof(T) * 8;
  constexpr T least = std::numeric_limits<T>::min();
  constexpr T most = std::numeric_limits<T>::max();
  EXPECT_EQ(apply_to<T>(Opcode::shift_left, 3, 2), 12);
  EXPECT_EQ(apply_to<T>(Opcode::shift_left, 1, width - 1), least);
  EXPECT_EQ(apply_to<T>(Opcode::shift_left, -1, 1), -2);
  EXPECT_EQ(apply_to<T>(Opcode::shift_right, -5, 1), -3);
  EXPECT_EQ(apply_to<T>(Opcode::shift_right, least, width - 1), -1);
  EXPECT_EQ(apply_to<T>(Opcode::shift_right, most, width - 2), 1);
  for (const T count : {T{-1}, width, static_cast<T>(width + 1), least, most}) {
    EXPECT_EQ(apply_to<T>(Opcode::shift_left, 3, count), 0) << count;
    EXPECT_EQ(apply_to<T>(Opcode::shift_left, -3, count), 0) << count;
    EXPECT_EQ(apply_to<T>(Opcode::shift_right, 3, count), 0) << count;
    EXPECT_EQ(apply_to<T>(Opcode::shift_right, -3, count), -1) << count;
  }
}

TYPED_TEST(Integers, WorkBitByBit) {
  using T = TypeParam;
  EXPECT_EQ(apply_to<T>(Opcode::bit_and, 12, 10), 8);
  EXPECT_EQ(apply_to<T>(Opcode::bit_or, 12, 10), 14);
  EXPECT_EQ(apply_to<T>(Opcode::bit_xor, 12, 10), 6);
  EXPECT_EQ(apply_to<T>(Opcode::bit_not, 12, 0), -13);
  EXPECT_EQ(apply_to<T>(Opcode::bit_and, -1, std::numeric_limits<T>::min()), std::numeric_limits<T>::min());
}

}  // namespace
}  // namespace eagle::kernel
