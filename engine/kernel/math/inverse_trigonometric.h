// atan, atan2, asin, acos.
#pragma once

#include "engine/kernel/math/pair.h"
#include "engine/kernel/math/parts.h"
#include "engine/kernel/math/tables.h"

namespace eagle::kernel::math {

// The angle of (x, y), x and y >= 0, as hi + lo, where t is about y / x. With c, the centre of the part that
// t is in, atan t = atan c + atan z, z = (y - c x) / (x + c y), |z| <= 0.0995. The last part's centre is
// infinite: z = -x / y.
template <typename R>
Pair<R> angle_of(R y, R x, R t) {
  using Integer = typename R::Integer;
  const Integer part = (bits(t) >> 51) - (((1023 - 4) << 1) | 0);
  const Integer index = select(part < 0, Integer(0), select(part > 15, Integer(15), part));
  const R centre = look_up(atan_centre, index);
  const R finite = select(index == 15, R(0.0), R(1.0));
  const Pair<R> moved = product(centre, x);
  const R over = fma(finite, y, -moved.hi);  // exact: y is near c x, or one of the two is 0
  const R under = fma(centre, y, finite * x);
  const R inverse = 1.0 / under;
  const R z = over * inverse;
  const R z_lo = (fma(-z, under, over) - moved.lo) * inverse;
  const R square = z * z;
  const R curved = (z * square) * polynomial(atan_terms, square);
  const Pair<R> total = sum_of_ordered(look_up(atan_value, index), z);
  return {total.hi, total.lo + ((look_up(atan_value_lo, index) + z_lo) + curved)};
}

template <typename R>
R atan(R x) {
  const R size = magnitude(x);
  const R t = select(size > 0x1p60, R(0x1p60), size);  // beyond, the same result
  const Pair<R> angle = angle_of(t, R(1.0), t);
  return with_sign_of(angle.hi + angle.lo, x);
}

// From the angle in the first quadrant to the one of (x, y).
template <typename R>
R turned(Pair<R> angle, R y, R x) {
  const Pair<R> left = sum_of_ordered(R(2 * half_pi), -angle.hi);
  const R on_left = left.hi + (left.lo + (2 * half_pi_lo - angle.lo));
  const auto is_left = bits(x) < 0;
  return with_sign_of(select(is_left, on_left, angle.hi + angle.lo), y);
}

template <typename R>
R atan2_everywhere(R y, R x) {
  using Integer = typename R::Integer;
  R a = magnitude(y), b = magnitude(x);
  const auto both_infinite = (a == infinity) & (b == infinity);
  const auto both_zero = (a == 0.0) & (b == 0.0);
  b = select(both_infinite, R(1.0), select(both_zero, R(1.0), select(a == infinity, R(0.0), b)));
  a = select(both_infinite | (a == infinity), R(1.0), select(b == infinity, R(0.0), a));
  b = select(b == infinity, R(1.0), b);
  // A quotient so small is the angle itself, rounded once.
  const R ratio = a / b;
  const auto tiny = ratio < 0x1p-800;
  // The larger one to about 1, by powers of two.
  const Integer exponent = (bits(select(a < b, b, a)) >> 52) & 0x7ff;
  const Integer up = Integer(1023) - exponent, half = arithmetic_shift(up, 1);
  const R first = power_of_two_of<R>(half), second = power_of_two_of<R>(up - half);
  const Pair<R> wide = angle_of(a * first * second, b * first * second, ratio);
  const Pair<R> angle = {select(tiny, ratio, wide.hi), select(tiny, R(0.0), wide.lo)};
  return select((x == x) & (y == y), turned(angle, y, x), R(not_a_number));
}

template <typename R>
R atan2(R y, R x) {
  const R a = magnitude(y), b = magnitude(x);
  const R t = a / b;
  const R larger = select(a < b, b, a);
  const auto usual = (larger < 0x1p500) & (larger > 0x1p-400) & (t > 0x1p-500);
  return unless(!usual, turned(angle_of(a, b, t), y, x), [=] { return atan2_everywhere(y, x); });
}

// asin on [0, 1/2], as x + rest; larger arguments by asin x = pi/2 - 2 asin(sqrt((1 - x) / 2)).
template <typename R>
struct ArcSine {
  typename R::Truth halved;  // whether `root` and `rest` are those of the square root
  Pair<R> root;
  R rest;
};
template <typename R>
ArcSine<R> arc_sine(R x) {
  const R size = magnitude(x);
  const auto halved = size > 0.5;
  const R square = select(halved, fma(size, -0.5, 0.5), size * size);
  const R safe = select(square == 0.0, R(1.0), square);
  const R root = select(square == 0.0, square, sqrt(square));
  const R root_lo = fma(-root, root, square) * (0.5 / sqrt(safe));
  const R hi = select(halved, root, size), lo = select(halved, root_lo, R(0.0));
  return {halved, {hi, lo}, fma(hi * square, polynomial(asin_terms, square), lo)};
}
template <typename R>
R asin(R x) {
  const ArcSine<R> a = arc_sine(x);
  const Pair<R> far = sum_of_ordered(R(half_pi), a.root.hi * -2.0);
  const R large = far.hi + (far.lo + fma(a.rest, -2.0, half_pi_lo));
  return with_sign_of(select(a.halved, large, a.root.hi + a.rest), x);
}
template <typename R>
R acos(R x) {
  const ArcSine<R> a = arc_sine(x);
  const auto negative = x < 0.0;
  const R near_one = (a.root.hi + a.rest) * 2.0;
  const Pair<R> far = sum_of_ordered(R(2 * half_pi), a.root.hi * -2.0);
  const R near_minus_one = far.hi + (far.lo + fma(a.rest, -2.0, 2 * half_pi_lo));
  const R sign = select(negative, R(-1.0), R(1.0));
  const Pair<R> middle = sum_of_ordered(R(half_pi), -a.root.hi * sign);
  const R around_zero = middle.hi + (middle.lo + fma(a.rest, -sign, half_pi_lo));
  return select(a.halved, select(negative, near_minus_one, near_one), around_zero);
}

}  // namespace eagle::kernel::math
