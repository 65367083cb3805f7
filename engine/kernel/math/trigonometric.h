// sin, cos, tan.
//
// x = k pi/2 + r with |r| <= pi/4, r as a sum of two numbers; then two short polynomials.
#pragma once

#include "engine/kernel/math/large_angle.h"
#include "engine/kernel/math/parts.h"

namespace eagle::kernel::math {

// For |x| < 2^19, after Cody and Waite (Software Manual for the Elementary Functions, 1980): k times 33 bits
// of pi/2 is exact, and so is every difference down to the third part.
template <typename R>
Angle<R> small_angle(R x) {
  const R shifted = fma(x, per_half_pi, rounding_shift);
  const R k = shifted - rounding_shift;
  const R first = fma(-k, half_pi_first, x);
  const R hi = fma(-k, half_pi_second, first);
  const R lo = fma(-k, half_pi_second, first - hi);
  return {bits(shifted), {hi, fma(-k, half_pi_third, lo)}};
}

template <typename R>
struct SineCosine {
  Pair<R> sine, cosine;
};
// r.lo may be 2^-48 here, and then it counts with the whole of the other function.
template <typename R>
SineCosine<R> sine_cosine(Pair<R> r) {
  const R square = r.hi * r.hi;
  const R square_lo = fma(r.hi, r.hi, -square);
  const R head = fma(square, -0.5, R(1.0));
  const R head_lo = fma(square_lo, -0.5, fma(square, -0.5, 1.0 - head));
  const R odd = (square * r.hi) * polynomial(sin_terms, square);
  const R even = (square * square) * polynomial(cos_terms, square);
  return {{r.hi, fma(r.lo, head + even, odd)}, {head, even + fma(-r.lo, r.hi + odd, head_lo)}};
}

// Sine of the angle, moved on by `quarters` of a turn.
template <typename R>
R sine_of(Angle<R> angle, std::uint64_t quarters) {
  const SineCosine<R> at = sine_cosine(angle.rest);
  const auto k = angle.quarters + quarters;
  const R value = select((k & 1) == 0, at.sine.hi + at.sine.lo, at.cosine.hi + at.cosine.lo);
  return from_bits(bits(value) ^ ((k & 2) << 62));
}
// Two errors add up in the quotient, so that the sine is more exact here: its term in r^3 is a sum of two
// numbers.
template <typename R>
Pair<R> precise_sine(Pair<R> r, R cosine) {
  constexpr std::array rest = {sin_terms[1], sin_terms[2], sin_terms[3], sin_terms[4], sin_terms[5]};
  const Pair<R> square = product(r.hi, r.hi);
  const Pair<R> cube = product(square.hi, r.hi);
  const Pair<R> term = product(cube.hi, R(sin_terms[0]));
  const R term_lo = fma(fma(square.lo, r.hi, cube.lo), sin_terms[0], term.lo);
  const R others = (cube.hi * square.hi) * polynomial(rest, square.hi);
  const Pair<R> total = sum_of_ordered(r.hi, term.hi);
  return sum_of_ordered(total.hi, total.lo + (term_lo + fma(r.lo, cosine, others)));
}
template <typename R>
R tangent_of(Angle<R> angle) {
  const Pair<R> head = sine_cosine(angle.rest).cosine;
  const Pair<R> cosine = sum_of_ordered(head.hi, head.lo);
  const Pair<R> sine = precise_sine(angle.rest, cosine.hi);
  const auto even = (angle.quarters & 1) == 0;
  const Pair<R> over = {select(even, sine.hi, cosine.hi), select(even, sine.lo, cosine.lo)};
  const Pair<R> under = {select(even, cosine.hi, -sine.hi), select(even, cosine.lo, -sine.lo)};
  const Pair<R> ratio = quotient(over, under);
  return ratio.hi + ratio.lo;
}

inline constexpr double small_angles = 0x1p19;
inline constexpr double own_sine = 0x1p-28;  // below it sin x = tan x = x to 2^-57 of itself

template <typename R>
R sin(R x) {
  const auto large = !(magnitude(x) < small_angles);
  const R usual = sine_of(small_angle(x), 0);
  return unless(large, select(magnitude(x) < own_sine, x, usual), [=] { return sine_of(large_angle(x), 0); });
}
template <typename R>
R cos(R x) {
  const auto large = !(magnitude(x) < small_angles);
  return unless(large, sine_of(small_angle(x), 1), [=] { return sine_of(large_angle(x), 1); });
}
template <typename R>
R tan(R x) {
  const auto large = !(magnitude(x) < small_angles);
  const R usual = tangent_of(small_angle(x));
  return unless(large, select(magnitude(x) < own_sine, x, usual), [=] { return tangent_of(large_angle(x)); });
}

}  // namespace eagle::kernel::math
