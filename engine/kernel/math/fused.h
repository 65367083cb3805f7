// a b + c, rounded once, for machines that have no instruction for it: the same bits as theirs.
//
// The exact product and the exact sums leave three numbers; the two smaller are added with rounding to odd,
// after which the last addition rounds rightly (Boldo and Melquiond, Emulation of FMA and correctly rounded
// sums, IEEE Trans. Computers 57, 2008).
#pragma once

#include "engine/kernel/math/pair.h"
#include "engine/kernel/math/parts.h"

namespace eagle::kernel::math {

// a b exactly, without `fma` (Dekker 1971), for sizes that neither overflow nor vanish.
template <typename R>
Pair<R> split_product(R a, R b) {
  constexpr double half_way = 0x1p27 + 1;
  const R a_large = a * half_way, b_large = b * half_way;
  const R a_hi = a_large - (a_large - a), b_hi = b_large - (b_large - b);
  const R a_lo = a - a_hi, b_lo = b - b_hi;
  const R hi = a * b;
  return {hi, a_lo * b_lo - (((hi - a_hi * b_hi) - a_lo * b_hi) - a_hi * b_lo)};
}

// a + b rounded to odd: of the two neighbours of an inexact sum, the one with an odd mantissa.
template <typename R>
R sum_to_odd(R a, R b) {
  using Integer = typename R::Integer;
  const Pair<R> s = sum(a, b);
  const auto even = (bits(s.hi) & 1) == 0;
  const Integer outwards = select((bits(s.hi) ^ bits(s.lo)) < 0, Integer(~std::uint64_t{0}), Integer(1));
  return select(even & (s.lo != 0.0), from_bits(bits(s.hi) + outwards), s.hi);
}

// a b + c = head + tail, where the tail is rounded to odd.
template <typename R>
Pair<R> product_and_sum(R a, R b, R c) {
  const Pair<R> p = split_product(a, b);
  const Pair<R> low = sum(c, p.lo);
  const Pair<R> high = sum(p.hi, low.hi);
  return {high.hi, sum_to_odd(low.lo, high.lo)};
}

// Every a, b, c: mantissas and exponents apart, then scaled back with one rounding.
template <typename R>
R soft_fma_everywhere(R a, R b, R c) {
  using Integer = typename R::Integer;
  const Normal<R> x = normal(magnitude(a)), y = normal(magnitude(b)), z = normal(magnitude(c));
  const Integer product_exponent = x.exponent + y.exponent;
  // What is 130 bits away from the other decides about the rounding alone.
  constexpr std::uint64_t most = 130;
  const Integer apart = z.exponent - product_exponent;
  const Integer near =
      select(apart > most, Integer(most), select(apart < -Integer(most), -Integer(most), apart));
  const Integer unit = select(apart > most, z.exponent - most, product_exponent);
  const Pair<R> exact = product_and_sum(with_sign_of(x.mantissa, a), with_sign_of(y.mantissa, b),
                                        with_sign_of(z.mantissa * power_of_two_of<R>(near), c));
  const R rounded = exact.hi + exact.lo;

  // Below the normal numbers the last bit kept is 2^-1074: 2^52 of it is added before the last rounding.
  const Integer last = -Integer(1074) - unit;
  const R quantum = power_of_two_of<R>(select(last < -Integer(900), -Integer(900), last));
  const R offset = with_sign_of(quantum * 0x1p52, rounded);
  const Pair<R> moved = sum(offset, exact.hi);
  const R subnormal = (moved.hi + sum_to_odd(moved.lo, exact.lo)) - offset;
  const R value = select(magnitude(rounded) < quantum * 0x1p52, with_sign_of(subnormal, rounded), rounded);

  const Integer half = arithmetic_shift(unit, 1);
  const R scaled = value * power_of_two_of<R>(half) * power_of_two_of<R>(unit - half);
  const auto finite = (magnitude(a) < infinity) & (magnitude(b) < infinity);
  const auto plain = (a == 0.0) | (b == 0.0) | !finite;
  const R other = select(c == 0.0, a * b, scaled);
  return select(plain, a * b + c, select(magnitude(c) < infinity, other, c));
}

template <typename R>
R soft_fma(R a, R b, R c) {
  const R p = a * b;
  const auto some = (magnitude(p) > 0x1p-900) | (a == 0.0) | (b == 0.0);
  const auto usual = some & (magnitude(a) < 0x1p900) & (magnitude(b) < 0x1p900) & (magnitude(c) < 0x1p960) &
                     (magnitude(p) < 0x1p960);
  const Pair<R> exact = product_and_sum(a, b, c);
  const R rounded = exact.hi + exact.lo;
  return unless(!usual, select(rounded == 0.0, p + c, rounded), [=] { return soft_fma_everywhere(a, b, c); });
}

// The same in single precision, on numbers that are singles: a b is exact, and a sum rounded to odd rounds
// rightly.
template <typename R>
R fma_of_singles(R a, R b, R c) {
  const R p = a * b;
  const R s = sum_to_odd(p, c);
  return select((magnitude(p + c) < infinity) & (s != 0.0), s, p + c);
}

}  // namespace eagle::kernel::math
