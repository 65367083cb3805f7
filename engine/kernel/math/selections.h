// Functions that only choose among their arguments, round to whole numbers, or look at signs: exact. R may be
// of single precision here.
#pragma once

#include "engine/kernel/math/number.h"

namespace eagle::kernel::math {

// Half away from zero. x - whole is exact.
template <typename R>
R round_half_away(R x) {
  const R whole = round_to_zero(x);
  return select(magnitude(x - whole) >= 0.5, whole + with_sign_of(R(1.0), x), whole);
}

// NaN for NaN, and +0 for both zeros.
template <typename R>
R sign(R x) {
  return select(x > 0.0, R(1.0), select(x < 0.0, R(-1.0), select(x == 0.0, R(0.0), x)));
}
// |x| with the sign of y; a NaN has none.
template <typename R>
R copysign(R x, R y) {
  return select(y == y, with_sign_of(x, y), magnitude(x));
}
// x - y where that is positive, else 0; NaN where one is.
template <typename R>
R fdim(R x, R y) {
  return select(x <= y, R(0.0), x - y);
}
// x between lo and hi; NaN where one of the three is, hi where lo > hi.
template <typename R>
R clip(R x, R lo, R hi) {
  const R above = select(x < lo, lo, x);
  const R inside = select(above > hi, hi, above);
  return select((x == x) & (lo == lo) & (hi == hi), inside, R(__builtin_nan("")));
}

}  // namespace eagle::kernel::math
