// Angles of any size, reduced exactly (Payne and Hanek, SIGNUM Newsletter 18, 1983).
#pragma once

#include <array>

#include "engine/kernel/math/pair.h"
#include "engine/kernel/math/parts.h"
#include "engine/kernel/math/tables.h"

namespace eagle::kernel::math {

// x = quarters * pi/2 + rest, |rest| <= pi/4; `quarters` matters modulo 4.
template <typename R>
struct Angle {
  typename R::Integer quarters;
  Pair<R> rest;
};

// x 2/pi mod 4 = M 2^e 0.b1b2b3... mod 4, with the 53-bit integer M: bits of 2/pi before number e - 2 give
// multiples of 4, and 192 after it leave an error below 2^-120. For |x| >= 2^19; infinities and NaN give NaN.
template <typename R>
Angle<R> large_angle(R x) {
  using Integer = typename R::Integer;
  constexpr std::uint64_t low = 0xffffffff;
  const Integer mantissa = (bits(x) & 0x000fffffffffffff) | 0x0010000000000000;
  const Integer exponent = (bits(x) >> 52) & 0x7ff;
  const Integer first = exponent - (1023 + 52 + 2 - 64);  // of 64 zeros and the bits of 2/pi

  // Six words of 32 bits from bit `first` on.
  const Integer word = first >> 5, shift = first & 31;
  std::array<Integer, 6> part = {0, 0, 0, 0, 0, 0};
  Integer ahead = look_up(bits_of_per_half_pi, word);
  for (std::size_t j = 0; j < part.size(); ++j) {
    const Integer next = look_up(bits_of_per_half_pi, word + (j + 1));
    part[j] = (shift_left((ahead << 32) | next, shift) >> 32) & low;
    ahead = next;
  }

  // The fraction of M 0.part[0]part[1]..., four words of it, schoolbook: M = high 2^32 + low.
  const Integer high_half = mantissa >> 32, low_half = mantissa & low;
  std::array<Integer, 4> fraction = {0, 0, 0, 0};
  Integer carry = ((low_half * part[5]) >> 32) + ((low_half * part[4]) & low) + ((high_half * part[5]) & low);
  carry = carry >> 32;
  for (std::size_t j = 4; j-- > 0;) {
    const Integer column = ((low_half * part[j]) & low) + ((low_half * part[j + 1]) >> 32) +
                           ((high_half * part[j + 1]) & low) + ((high_half * part[j + 2]) >> 32) + carry;
    fraction[j] = column & low;
    carry = column >> 32;
  }

  // Four times the fraction is the number of quarters: its nearest integer, and a rest in [-1/2, 1/2).
  const Integer top = (fraction[0] << 32) | fraction[1];
  const Integer quarters = (top + 0x2000000000000000) >> 62;
  const Integer signed_top = top - (quarters << 62);  // in units of 2^-64 turns, wraps into the sign
  // Words as numbers, exact: 2^-62 quarters is one unit of `signed_top`.
  const R upper = to_number<R>(arithmetic_shift(signed_top, 32)) * 0x1p-30;
  const R lower = to_number<R>(signed_top & low) * 0x1p-62;
  const R third = to_number<R>(fraction[2]) * 0x1p-94;
  const R fourth = to_number<R>(fraction[3]) * 0x1p-126;
  const Pair<R> first_sum = sum(upper, lower);
  const Pair<R> second_sum = sum(first_sum.hi, third);
  const Pair<R> turn = sum_of_ordered(second_sum.hi, (first_sum.lo + second_sum.lo) + fourth);

  const Pair<R> scaled = product(turn.hi, R(half_pi));
  const Pair<R> rest = sum_of_ordered(scaled.hi, scaled.lo + fma(turn.hi, half_pi_lo, turn.lo * half_pi));
  const auto negative = x < 0.0;
  const R sign = select(magnitude(x) < infinity, select(negative, R(-1.0), R(1.0)), R(not_a_number));
  return {select(negative, Integer(0) - quarters, quarters), {rest.hi * sign, rest.lo * sign}};
}

}  // namespace eagle::kernel::math
