// e^x, 2^x and what is made of them.
//
// x = (16 n + j) ln 2 / 16 + r with |r| <= ln 2 / 32, so that e^x = 2^n 2^(j/16) e^r: a table for 2^(j/16),
// in two parts, and a short polynomial for e^r.
#pragma once

#include "engine/kernel/math/pair.h"
#include "engine/kernel/math/parts.h"
#include "engine/kernel/math/tables.h"

namespace eagle::kernel::math {

// x as steps of ln 2 / 16 and a rest.
template <typename R>
struct Steps {
  typename R::Integer count;  // in the low bits
  R whole;                    // the same as a number
};
template <typename R>
Steps<R> steps_of(R x, double per_step) {
  const R shifted = fma(x, per_step, rounding_shift);
  return {bits(shifted), shifted - rounding_shift};
}

// e^x = 2^n mantissa, or e^(x + x_lo), for |x| < 2^15; mantissa in [0.97, 2.05): 0.53 ulp.
template <typename R>
struct Scaled {
  R mantissa;
  typename R::Integer n;
};
template <typename R>
Scaled<R> scaled_exp(Steps<R> steps, R r) {
  const R t = look_up(power_of_two, steps.count);
  const R t_lo = look_up(power_of_two_lo, steps.count);
  const R p = fma(r * r, polynomial(exp_terms, r), r);
  return {t + fma(t, p, t_lo), arithmetic_shift(steps.count << 13, 17)};
}
template <typename R>
Scaled<R> scaled_exp(R x) {
  const Steps<R> steps = steps_of(x, steps_of_exp);
  return scaled_exp(steps, fma(steps.whole, -step_of_exp_lo, fma(steps.whole, -step_of_exp, x)));
}
template <typename R>
Scaled<R> scaled_exp(R x, R x_lo) {
  const Steps<R> steps = steps_of(x, steps_of_exp);
  return scaled_exp(steps, fma(steps.whole, -step_of_exp_lo, fma(steps.whole, -step_of_exp, x)) + x_lo);
}

// 2^n mantissa, without regard to the ends of the range.
template <typename R>
R in_range(Scaled<R> s) {
  return from_bits(bits(s.mantissa) + (s.n << 52));
}
// The same to the ends of the range, for |n| <= 2000: the second product alone rounds.
template <typename R>
R to_the_ends(Scaled<R> s) {
  const auto half = arithmetic_shift(s.n, 1);
  return s.mantissa * power_of_two_of<R>(half) * power_of_two_of<R>(s.n - half);
}

// e^x, everywhere.
template <typename R>
R exp_to_the_ends(R x) {
  return to_the_ends(scaled_exp(within(x, 800.0)));
}

template <typename R>
R exp(R x) {
  return unless(!(magnitude(x) < 707.0), in_range(scaled_exp(x)), [=] { return exp_to_the_ends(x); });
}

template <typename R>
Scaled<R> scaled_exp2(R x) {
  const Steps<R> steps = steps_of(x, 16.0);
  const R r = (x - steps.whole * 0.0625) * ln_2_nearest;
  return scaled_exp(steps, r);
}
template <typename R>
R exp2(R x) {
  return unless(!(magnitude(x) < 1021.0), in_range(scaled_exp2(x)),
                [=] { return to_the_ends(scaled_exp2(within(x, 1200.0))); });
}

// e^(x + x_lo) = 2^n (hi + lo) to about 2^-62, for |x| < 2^15 and |x_lo| of an ulp at most; |lo| may be
// 2^-11. For |x| <= ln 2 / 32 and x_lo = 0, n = 0, hi is 1 + x rounded and hi + lo - 1 is exact to 2^-60 of
// itself.
template <typename R>
struct ScaledPair {
  Pair<R> mantissa;
  typename R::Integer n;
};
template <typename R>
ScaledPair<R> exp_pair(R x, R x_lo) {
  const Steps<R> steps = steps_of(x, steps_of_exp);
  const R exact = fma(steps.whole, -step_of_exp, x);
  const R rest = steps.whole * step_of_exp_lo;
  const Pair<R> whole = sum_of_ordered(exact, -rest);
  const R r = whole.hi + x_lo;
  const R r_lo = whole.lo + ((whole.hi - r) + x_lo);
  const R p = fma(r * r, polynomial(exp_terms, r), r_lo);  // e^r - 1 - r
  const R t = look_up(power_of_two, steps.count);
  const R t_lo = look_up(power_of_two_lo, steps.count);
  const Pair<R> linear = product(t, r);
  const Pair<R> total = sum_of_ordered(t, linear.hi);
  const R lo = total.lo + (linear.lo + fma(t, p, fma(t_lo, r, t_lo)));
  return {{total.hi, lo}, arithmetic_shift(steps.count << 13, 17)};
}

// e^x - 1 as hi + lo, for |x| < 709, to about 2^-60 of itself where |x| > 2^-28.
template <typename R>
Pair<R> expm1_pair(R x) {
  const ScaledPair<R> e = exp_pair(x, R(0.0));
  const R scale = power_of_two_of<R>(e.n);
  const Pair<R> less = sum(e.mantissa.hi * scale, R(-1.0));
  return {less.hi, less.lo + e.mantissa.lo * scale};
}
template <typename R>
R expm1(R x) {
  const Pair<R> e = expm1_pair(x);
  return unless(!(magnitude(x) < 707.0), with_sign_of(e.hi + e.lo, x), [=] {
    const R large = exp_to_the_ends(x);
    return select(x < 0.0, R(-1.0), large);
  });
}

}  // namespace eagle::kernel::math
