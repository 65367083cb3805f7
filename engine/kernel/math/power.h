// x^y = e^(y ln x), with ln x to 2^-68: y ln x may be 2^9.5, of which 2^-58 must be right.
#pragma once

#include "engine/kernel/math/logarithm.h"

namespace eagle::kernel::math {

// ln x + more * ln 2 as hi + lo to about 2^-68 of itself, for normal x > 0. Like `log_pair`, with a second
// table for what the first one leaves: |r| <= 1/440. What r_lo adds is r_lo / (1 + r): its term in r^2 is
// some 2^-71, which counts where neither table adds anything to r, so that ln x itself is as small as 2^-9.
template <typename R>
Pair<R> precise_log(R x, R more) {
  const Split<R> s = split(x);
  const Pair<R> coarse = product(s.m, look_up(log_inverse, s.position));
  const auto part = bits(fma(coarse.hi - 1.0, R(224.0), R(rounding_shift)));
  const R c = look_up(finer_inverse, part);
  const Pair<R> fine = product(coarse.hi, c);
  const R r = fine.hi - 1.0;
  const R r_lo = fma(coarse.lo, c, fine.lo);

  const R k = s.k + more;
  const R whole = fma(k, ln_2, look_up(log_value, s.position) + look_up(finer_value, part));
  const R whole_lo = fma(k, ln_2_lo, look_up(log_value_lo, s.position) + look_up(finer_value_lo, part));
  const Pair<R> linear = sum_of_ordered(whole, r);
  const Pair<R> square = product(r, r);
  const Pair<R> quadratic = sum_of_ordered(linear.hi, square.hi * -0.5);
  const R cubic = (square.hi * r) * polynomial(finer_terms, r);
  const R small = fma(square.lo, -0.5, fma(fma(r, r, -r), r_lo, r_lo)) + whole_lo;
  const R lo = (linear.lo + quadratic.lo) + (small + cubic);
  return sum_of_ordered(quadratic.hi, lo);
}

template <typename R>
Pair<R> times(R y, Pair<R> a) {
  const Pair<R> hi = product(y, a.hi);
  return {hi.hi, fma(y, a.lo, hi.lo)};
}

// Whether y is an integer, and an odd one.
template <typename R>
typename R::Truth is_whole(R y) {
  return round_to_zero(y) == y;
}

// pow for every x and y, as C's.
template <typename R>
R pow_everywhere(R x, R y) {
  const R size = magnitude(x);
  const auto small = size < least_normal;
  const Pair<R> log = precise_log(select(small, size * 0x1p54, size), select(small, R(-54.0), R(0.0)));
  const Pair<R> product = times(y, log);
  const auto usual = magnitude(product.hi) < 800.0;
  R result = to_the_ends(scaled_exp(within(product.hi, 800.0), select(usual, product.lo, R(0.0))));

  const auto grows = (size > 1.0) ^ (y < 0.0);
  const auto at_an_end = (size == 0.0) | (size == infinity) | (magnitude(y) == infinity);
  result = select(at_an_end, select(grows, R(infinity), R(0.0)), result);
  result = select((magnitude(y) == infinity) & (size == 1.0), R(1.0), result);

  const auto whole = is_whole(y);
  const auto odd = whole & !is_whole(y * 0.5) & (magnitude(y) < 0x1p53);
  const auto negative = bits(x) < 0;
  result =
      select((x < 0.0) & !whole & (size < infinity) & (magnitude(y) < infinity), R(not_a_number), result);
  result = select(odd & negative, -result, result);
  result = select((x == x) & (y == y), result, R(not_a_number));
  return select((y == 0.0) | (x == 1.0), R(1.0), result);
}

template <typename R>
R pow(R x, R y) {
  const Pair<R> product = times(y, precise_log(x, R(0.0)));
  const auto special = is_unusual(x) | !(magnitude(product.hi) < 707.0);
  return unless(special, in_range(scaled_exp(product.hi, product.lo)), [=] { return pow_everywhere(x, y); });
}

}  // namespace eagle::kernel::math
