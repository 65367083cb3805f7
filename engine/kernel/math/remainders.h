// Remainders and quotients of division, exact; and what else is exact but takes more than an instruction.
#pragma once

#include "engine/kernel/math/parts.h"

namespace eagle::kernel::math {

// |x| mod |y| for finite x and y > 0: long division, 50 bits of the quotient a step, each step exact. The
// remainder of a step and the divisor are multiples of 2^-52 below 2, and so is what is left: it fits.
template <typename R>
R magnitude_of_remainder(R x, R y) {
  using Integer = typename R::Integer;
  constexpr int most_steps = 43;  // 2098 bits at most
  const Normal<R> a = normal(x), b = normal(y);
  const Integer apart = a.exponent - b.exponent;
  const Integer left = select(apart < 0, Integer(0), select(apart > 2100, Integer(2100), apart));
  const auto less = [&](R rest, R scale) {
    const R larger = rest * scale;
    const R times = round_to_zero(larger / b.mantissa);
    const R remains = fma(-times, b.mantissa, larger);
    return select(remains < 0.0, remains + b.mantissa, remains);  // the quotient may have rounded up
  };
  const Progress<R> end = repeat(
      most_steps, Progress<R>{less(a.mantissa, R(1.0)), left},
      [](const Progress<R>& p) { return p.left > 0; },
      [&](const Progress<R>& p) {
        const Integer now = select(p.left > 50, Integer(50), p.left);
        return Progress<R>{less(p.rest, power_of_two_of<R>(now)), p.left - now};
      });
  const Integer half = arithmetic_shift(b.exponent, 1);
  const R scaled = end.rest * power_of_two_of<R>(half) * power_of_two_of<R>(b.exponent - half);
  return select(x < y, x, scaled);
}

// C's fmod: exact, with the sign of x.
template <typename R>
R fmod(R x, R y) {
  const R a = magnitude(x), b = magnitude(y);
  const auto defined = (a < infinity) & (b > 0.0);  // not so where one is NaN
  const auto easy = (b == infinity) | !defined;
  const R rest = magnitude_of_remainder(select(easy, R(1.0), a), select(easy, R(1.0), b));
  const R finite = with_sign_of(select(b == infinity, a, rest), x);
  return select(defined, finite, R(not_a_number));
}

// Python's x % y: what fmod leaves, plus y where the signs differ; a zero has the sign of y.
template <typename R>
R remainder(R x, R y) {
  const R rest = fmod(x, y);
  const auto differ = (rest < 0.0) ^ (y < 0.0);
  return select(rest == 0.0, with_sign_of(rest, y), select(differ, rest + y, rest));
}

// Python's x // y; x / y where y is 0.
template <typename R>
R floor_quotient(R x, R y) {
  const R rest = fmod(x, y);
  const auto differ = (rest != 0.0) & ((rest < 0.0) ^ (y < 0.0));
  const R ratio = (x - rest) / y;
  const R exact = select(differ, ratio - 1.0, ratio);
  const R down = round_down(exact);
  const R whole = select(exact - down > 0.5, down + 1.0, down);
  return select(y == 0.0, x / y, select(exact == 0.0, with_sign_of(R(0.0), x / y), whole));
}

}  // namespace eagle::kernel::math
