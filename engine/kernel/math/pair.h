// Sums of two numbers, hi + lo with |lo| at most about an ulp of hi: twice the precision.
//
// The sums and products that make one are exact (Dekker 1971, Knuth, The Art of Computer Programming 4.2.2).
#pragma once

#include "engine/kernel/math/number.h"

namespace eagle::kernel::math {

template <typename R>
struct Pair {
  R hi, lo;
};

// a + b exactly, where |a| >= |b| or a = 0.
template <typename R>
Pair<R> sum_of_ordered(R a, R b) {
  const R hi = a + b;
  return {hi, (a - hi) + b};
}
// a + b exactly.
template <typename R>
Pair<R> sum(R a, R b) {
  const R hi = a + b;
  const R part = hi - a;
  return {hi, (a - (hi - part)) + (b - part)};
}
// a b exactly.
template <typename R>
Pair<R> product(R a, R b) {
  const R hi = a * b;
  return {hi, fma(a, b, -hi)};
}
// (a + a_lo) / (b + b_lo) to about 2^-100.
template <typename R>
Pair<R> quotient(Pair<R> a, Pair<R> b) {
  const R inverse = 1.0 / b.hi;
  const R hi = a.hi * inverse;
  return {hi, (fma(-hi, b.hi, a.hi) + fma(-hi, b.lo, a.lo)) * inverse};
}
// The square root of a > 0 to about 2^-100.
template <typename R>
Pair<R> square_root(Pair<R> a) {
  const R hi = sqrt(a.hi);
  return {hi, (fma(-hi, hi, a.hi) + a.lo) * (0.5 / hi)};
}

// c0 + c1 x + c2 x^2 + ..., N >= 2: Horner's scheme in x^2 for the even and for the odd terms, side by side.
template <typename R, typename Coefficient, std::size_t N>
R polynomial(const std::array<Coefficient, N>& c, R x) {
  constexpr std::size_t last_even = (N - 1) / 2 * 2, last_odd = (N - 2) / 2 * 2 + 1;
  const R square = x * x;
  R even = c[last_even], odd = c[last_odd];
  for (std::size_t i = last_even; i >= 2; i -= 2) even = fma(even, square, R(c[i - 2]));
  for (std::size_t i = last_odd; i >= 3; i -= 2) odd = fma(odd, square, R(c[i - 2]));
  return fma(odd, x, even);
}

}  // namespace eagle::kernel::math
