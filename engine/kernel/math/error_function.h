// erf and erfc, by one polynomial for each of a few parts of the line.
#pragma once

#include <utility>

#include "engine/kernel/math/exponential.h"

namespace eagle::kernel::math {

// The polynomial of part `index` at d, as hi + lo.
template <typename R, std::size_t N, std::size_t Parts>
Pair<R> piece(const std::array<std::array<double, Parts>, N>& terms, const std::array<double, Parts>& lowest,
              typename R::Integer index, R d) {
  const auto rest = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return polynomial(std::array<R, N - 1>{look_up(terms[I + 1], index)...}, d);
  }(std::make_index_sequence<N - 1>());
  return sum_of_ordered(look_up(terms[0], index), fma(rest, d, look_up(lowest, index)));
}

// erf(x) / x for |x| < 6, as hi + lo: 16 parts.
template <typename R>
Pair<R> erf_over(R size) {
  const R part = within(round_to_zero(size * (16.0 / 6.0)), 15.0);
  const auto index = bits(part + rounding_shift);
  return piece(erf_terms, erf_term_lo, index, size - fma(part, 0.375, 0.1875));
}
template <typename R>
R erf(R x) {
  const R size = magnitude(x);
  const Pair<R> ratio = erf_over(size);
  return select(size >= 6.0, with_sign_of(R(1.0), x), fma(x, ratio.hi, x * ratio.lo));
}

// From 1/2 on e^(-x^2) times a slowly varying function, four parts a binade; before it 1 - erf.
template <typename R>
R erfc(R x) {
  const R far = select(x > 28.0, R(28.0), select(x < 0.5, R(0.5), x));
  const auto index = (bits(far) >> 50) - ((1023 - 1) << 2);
  const Pair<R> slow = piece(erfc_terms, erfc_term_lo, index, far - look_up(erfc_centre, index));
  const Pair<R> square = product(far, far);
  const ScaledPair<R> fast = exp_pair(-square.hi, -square.lo);
  const Pair<R> value = product(fast.mantissa.hi, slow.hi);
  const R value_lo = value.lo + fma(fast.mantissa.hi, slow.lo, fast.mantissa.lo * slow.hi);
  const R right = to_the_ends(Scaled<R>{value.hi + value_lo, fast.n});

  const R near = within(x, 6.0);
  const Pair<R> ratio = erf_over(magnitude(near));
  const Pair<R> erf = product(near, ratio.hi);
  const Pair<R> rest = sum(R(1.0), -erf.hi);
  const R left = rest.hi + (rest.lo - fma(near, ratio.lo, erf.lo));
  return select(x >= 0.5, right, left);
}

}  // namespace eagle::kernel::math
