// rsqrt, cbrt, hypot. (sqrt is the machine's, rounded correctly.)
#pragma once

#include "engine/kernel/math/pair.h"
#include "engine/kernel/math/parts.h"
#include "engine/kernel/math/tables.h"

namespace eagle::kernel::math {

// 1 / sqrt(x) for x in [2^-900, inf): 1/s, and the two errors of s = sqrt(x) and 1/s taken back.
template <typename R>
R rsqrt_usual(R x) {
  const R s = sqrt(x);
  const R w = 1.0 / s;
  const R s_lo = fma(-s, s, x) * (0.5 * w);
  return fma(w, fma(-s, w, 1.0) - s_lo * w, w);
}
template <typename R>
R rsqrt(R x) {
  return unless(!((x >= 0x1p-900) & (x < infinity)), rsqrt_usual(x), [=] {
    const R small = rsqrt_usual(x * 0x1p200) * 0x1p100;
    const auto at_an_end = (x == 0.0) | (x == infinity);
    return select(at_an_end, 1.0 / x, small);  // NaN below 0
  });
}

// cbrt of a normal |x|: x = 2^(3 q) m with m in [1, 8); z = m^(-1/3) by a polynomial and one step of fourth
// order; then t = m z^2, and its error from t^3 - m, which needs no division since 1 / t^2 = z^2.
template <typename R>
R cbrt_usual(R x) {
  using Integer = typename R::Integer;
  const Integer exponent = (bits(x) >> 52) & 0x7ff;
  const Integer third = (exponent * 21846) >> 16;  // exponent / 3, for exponents below 2^11
  const Integer left = exponent - third * 3;
  const R mantissa = from_bits((bits(x) & 0x000fffffffffffff) | 0x3ff0000000000000);
  const R m = from_bits(bits(mantissa) + (left << 52));

  const R start = polynomial(cbrt_start, mantissa) * look_up(cbrt_scale, left);
  const R e = fma(-m * start, start * start, 1.0);
  const R correction = fma(fma(fma(e, 35.0 / 243.0, 14.0 / 81.0), e, 2.0 / 9.0), e, 1.0 / 3.0);
  const R z = fma(start * e, correction, start);

  const R t = m * (z * z);
  const Pair<R> square = product(t, t);
  const Pair<R> cube = product(square.hi, t);
  const R off = (m - cube.hi) - fma(square.lo, t, cube.lo);
  const R root = fma(off, z * z * (1.0 / 3.0), t);
  return with_sign_of(from_bits(bits(root) + ((third - 341) << 52)), x);
}
template <typename R>
R cbrt(R x) {
  const auto special = !((magnitude(x) >= least_normal) & (magnitude(x) < infinity));
  return unless(special, cbrt_usual(x), [=] {
    const R small = cbrt_usual(x * 0x1p54) * 0x1p-18;
    return select((magnitude(x) < infinity) & (x != 0.0), small, x + x);
  });
}

// The square root of x^2 + y^2, each square exact, for sizes whose squares neither overflow nor vanish
// together.
template <typename R>
R hypot_usual(R x, R y) {
  const Pair<R> a = product(x, x), b = product(y, y);
  const Pair<R> total = sum(a.hi, b.hi);
  const Pair<R> root = square_root(Pair<R>{total.hi, total.lo + (a.lo + b.lo)});
  return root.hi + root.lo;
}
template <typename R>
R hypot(R x, R y) {
  const R a = magnitude(x), b = magnitude(y);
  const R larger = select(a < b, b, a);
  const auto special = !((larger < 0x1p500) & (larger > 0x1p-400));
  return unless(special, hypot_usual(a, b), [=] {
    const auto huge = larger > 1.0;
    const R down = select(huge, R(0x1p-600), R(0x1p600)), up = select(huge, R(0x1p600), R(0x1p-600));
    const R scaled = hypot_usual(a * down, b * down) * up;
    const R finite = select(larger == 0.0, a + b, scaled);  // both may be 0, or the larger one NaN
    return select((a == infinity) | (b == infinity), R(infinity), select((a == a) & (b == b), finite, a + b));
  });
}

}  // namespace eagle::kernel::math
