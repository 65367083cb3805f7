// Hyperbolic functions and their inverses, from e^x - 1 and ln(1 + x) of twice the precision.
#pragma once

#include "engine/kernel/math/logarithm.h"

namespace eagle::kernel::math {

inline constexpr double own_value =
    0x1p-28;  // below it sinh, tanh, asinh, atanh of x are x to 2^-57 of themselves

template <typename R>
Pair<R> ordered(Pair<R> a) {
  return sum_of_ordered(a.hi, a.lo);
}
// a + b, where both are positive.
template <typename R>
Pair<R> added(Pair<R> a, Pair<R> b) {
  const Pair<R> hi = sum(a.hi, b.hi);
  return {hi.hi, hi.lo + (a.lo + b.lo)};
}

// e^|x| / 2 for any |x| >= 707.
template <typename R>
R half_exp(R size) {
  const Scaled<R> e = scaled_exp(within(size, 800.0));
  return to_the_ends(Scaled<R>{e.mantissa, e.n - 1});
}

// With E = e^|x| - 1: sinh |x| = (E + E / (E + 1)) / 2, in which nothing cancels.
template <typename R>
R sinh(R x) {
  const R size = magnitude(x);
  const Pair<R> e = ordered(expm1_pair(size));
  const Pair<R> total = added(e, quotient(e, added(Pair<R>{R(1.0), R(0.0)}, e)));
  const R usual = select(size < own_value, size, 0.5 * (total.hi + total.lo));
  return unless(!(size < 707.0), with_sign_of(usual, x), [=] { return with_sign_of(half_exp(size), x); });
}

template <typename R>
R cosh(R x) {
  const R size = magnitude(x);
  const ScaledPair<R> e = exp_pair(size, R(0.0));
  const R scale = power_of_two_of<R>(e.n);
  const Pair<R> grows = ordered(Pair<R>{e.mantissa.hi * scale, e.mantissa.lo * scale});
  const Pair<R> total = added(grows, quotient(Pair<R>{R(1.0), R(0.0)}, grows));
  return unless(!(size < 707.0), 0.5 * (total.hi + total.lo), [=] { return half_exp(size); });
}

// With E = e^(2 |x|) - 1: tanh |x| = E / (E + 2), which is 1 from 20 on.
template <typename R>
R tanh(R x) {
  const R size = magnitude(x);
  const R limited = select(size > 20.0, R(20.0), size);
  const Pair<R> e = ordered(expm1_pair(limited + limited));
  const Pair<R> ratio = quotient(e, added(Pair<R>{R(2.0), R(0.0)}, e));
  return with_sign_of(select(size < own_value, size, ratio.hi + ratio.lo), x);
}

// ln(|x| + sqrt(x^2 + 1)) = ln(1 + |x| + x^2 / (1 + sqrt(x^2 + 1))).
template <typename R>
R asinh(R x) {
  const R size = magnitude(x);
  const Pair<R> square = product(size, size);
  const Pair<R> more = sum(square.hi, R(1.0));
  const Pair<R> root = square_root(Pair<R>{more.hi, more.lo + square.lo});
  const Pair<R> ratio = quotient(square, added(Pair<R>{R(1.0), R(0.0)}, root));
  const Pair<R> argument = added(Pair<R>{size, R(0.0)}, ratio);
  const Pair<R> value = log1p_pair(argument.hi, argument.lo);
  const R usual = select(size < own_value, size, value.hi + value.lo);
  return unless(!(size < 0x1p500), with_sign_of(usual, x), [=] {
    const Pair<R> large = log_pair(size, R(1.0));  // ln(2 |x|)
    return with_sign_of(select(size < infinity, large.hi + large.lo, size), x);
  });
}

// With t = x - 1: ln(1 + t + sqrt(t (t + 2))).
template <typename R>
R acosh(R x) {
  const Pair<R> t = sum(x, R(-1.0));
  const Pair<R> square = product(t.hi, t.hi);
  const Pair<R> under = sum(t.hi + t.hi, square.hi);
  const R under_lo = under.lo + fma(t.lo, fma(t.hi, 2.0, 2.0), square.lo);
  const R safe = select(under.hi > 0.0, under.hi, R(1.0));
  const Pair<R> root = square_root(Pair<R>{safe, under_lo});
  const Pair<R> argument = added(t, root);
  const Pair<R> value = log1p_pair(argument.hi, argument.lo);
  return unless(!((x > 1.0) & (x < 0x1p500)), value.hi + value.lo, [=] {
    const Pair<R> large = log_pair(x, R(1.0));
    const R finite = select(x < infinity, large.hi + large.lo, x + x);
    return select(x == 1.0, R(0.0), select(x < 1.0, R(not_a_number), finite));
  });
}

// ln(1 + 2 |x| / (1 - |x|)) / 2.
template <typename R>
R atanh(R x) {
  const R size = magnitude(x);
  const Pair<R> ratio = quotient(Pair<R>{size + size, R(0.0)}, sum(R(1.0), -size));
  const Pair<R> argument = ordered(ratio);
  const Pair<R> value = log1p_pair(argument.hi, argument.lo);
  const R usual = select(size < own_value, size, 0.5 * (value.hi + value.lo));
  return unless(!(size < 1.0), with_sign_of(usual, x),
                [=] { return select(size == 1.0, with_sign_of(R(infinity), x), R(not_a_number)); });
}

}  // namespace eagle::kernel::math
