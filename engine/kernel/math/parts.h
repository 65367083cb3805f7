// Signs, exponents and mantissas.
#pragma once

#include "engine/kernel/math/number.h"

namespace eagle::kernel::math {

inline constexpr double infinity = __builtin_inf();
inline constexpr double not_a_number = __builtin_nan("");
inline constexpr double least_normal = 0x1p-1022;
// Added to a number below 2^51 it leaves the nearest integer in the low bits, rounded half to even.
inline constexpr double rounding_shift = 0x1.8p52;

// 2^n for -1022 <= n <= 1023.
template <typename R>
R power_of_two_of(typename R::Integer n) {
  return from_bits((n + 1023) << 52);
}

// An integer of less than 2^51 in magnitude as a number.
template <typename R>
R to_number(typename R::Integer i) {
  return from_bits(i + std::bit_cast<std::uint64_t>(rounding_shift)) - rounding_shift;
}

// x where |x| <= end, else the nearest end; NaN stays.
template <typename R>
R within(R x, double end) {
  return select(x > end, R(end), select(x < -end, R(-end), x));
}

// A positive number as 2^exponent mantissa with mantissa in [1, 2); subnormal ones too.
template <typename R>
struct Normal {
  typename R::Integer exponent;
  R mantissa;
};
template <typename R>
Normal<R> normal(R x) {
  const auto small = x < least_normal;
  const R scaled = select(small, x * 0x1p54, x);
  const auto exponent =
      (bits(scaled) >> 52) - select(small, typename R::Integer(1023 + 54), typename R::Integer(1023));
  return {exponent, from_bits((bits(scaled) & 0x000fffffffffffff) | 0x3ff0000000000000)};
}

}  // namespace eagle::kernel::math
