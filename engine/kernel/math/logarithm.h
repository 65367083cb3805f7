// Logarithms.
//
// x = 2^k m with m in [0.70, 1.41); c is about 1/m, from a table, in so few bits that m c - 1 = r is exact as
// a sum of two numbers; then ln x = k ln 2 - ln c + ln(1 + r). Around 1, k = 0 and c = 1, so that nothing
// cancels.
#pragma once

#include "engine/kernel/math/exponential.h"

namespace eagle::kernel::math {

inline constexpr std::uint64_t first_mantissa = 0x3fe6800000000000;  // 0.703, as bits
inline constexpr std::uint64_t exponent_bits = 0xfff0000000000000;

// x = 2^k m.
template <typename R>
struct Split {
  typename R::Integer position;  // the part of m is bits 48 to 51
  R k, m, unit;                  // unit = 2^-k
};
template <typename R>
Split<R> split(R x) {
  const auto position = bits(x) - first_mantissa;
  const auto shift = position & exponent_bits;
  const R k = from_bits(arithmetic_shift(position, 52) + std::bit_cast<std::uint64_t>(rounding_shift));
  return {position >> 48, k - rounding_shift, from_bits(bits(x) - shift),
          from_bits(typename R::Integer(std::bit_cast<std::uint64_t>(1.0)) - shift)};
}

// Whether the logarithm needs more than `log_pair`: x is not a positive normal finite number.
template <typename R>
typename R::Truth is_unusual(R x) {
  constexpr std::uint64_t least = 0x0010000000000000, end = 0x7ff0000000000000;
  return !below(bits(x) - least, typename R::Integer(end - least));
}

// What is left of m after the table: m c = 1 + r + r_lo.
template <typename R>
Pair<R> log_pair(const Split<R>& s, R r, R r_lo, R k) {
  const Pair<R> total = sum_of_ordered(fma(k, ln_2, look_up(log_value, s.position)), r);
  const R both = r + r_lo;
  const R rest = fma(k, ln_2_lo, look_up(log_value_lo, s.position)) + r_lo;
  return {total.hi, total.lo + fma(both * both, polynomial(log_terms, both), rest)};
}
// ln x + more ln 2 as hi + lo, for normal x > 0: to 2^-62, and in [1 - 1/64, 1 + 1/32] to 2^-58 of itself.
template <typename R>
Pair<R> log_pair(R x, R more) {
  const Split<R> s = split(x);
  const Pair<R> scaled = product(s.m, look_up(log_inverse, s.position));
  return log_pair(s, scaled.hi - 1.0, scaled.lo, s.k + more);
}
// ln(x + x_lo) in the same way, for x < 2^1000 and |x_lo| of about an ulp of x at most.
template <typename R>
Pair<R> log_pair_of_sum(R x, R x_lo) {
  const Split<R> s = split(x);
  const R c = look_up(log_inverse, s.position);
  const Pair<R> scaled = product(s.m, c);
  return log_pair(s, scaled.hi - 1.0, fma(x_lo * s.unit, c, scaled.lo), s.k);
}

// What a logarithm is where x is not a positive finite number; elsewhere `usual`.
template <typename R>
R log_at_the_ends(R x, R usual) {
  const R positive = select(x < infinity, usual, x + x);  // NaN too
  return select(x == 0.0, R(-infinity), select(x < 0.0, R(not_a_number), positive));
}

// The logarithm of every positive finite number, as hi + lo.
template <typename R>
Pair<R> log_pair_everywhere(R x) {
  const auto small = x < least_normal;
  return log_pair(select(small, x * 0x1p54, x), select(small, R(-54.0), R(0.0)));
}

// `scale` of ln x.
template <typename R, typename Scale>
R log_of(R x, Scale scale) {
  return unless(is_unusual(x), scale(log_pair(x, R(0.0))),
                [=] { return log_at_the_ends(x, scale(log_pair_everywhere(x))); });
}
template <typename R>
R times(Pair<R> a, double factor, double factor_lo) {
  const Pair<R> scaled = product(a.hi, R(factor));
  return scaled.hi + (scaled.lo + fma(a.lo, factor, a.hi * factor_lo));
}
template <typename R>
R log(R x) {
  return log_of(x, [](Pair<R> a) { return a.hi + a.lo; });
}
template <typename R>
R log2(R x) {
  return log_of(x, [](Pair<R> a) { return times(a, per_ln_2, per_ln_2_lo); });
}
template <typename R>
R log10(R x) {
  return log_of(x, [](Pair<R> a) { return times(a, per_ln_10, per_ln_10_lo); });
}

// ln(1 + x + x_lo) as hi + lo, for -1 < x < 2^1000.
template <typename R>
Pair<R> log1p_pair(R x, R x_lo) {
  const Pair<R> one_more = sum(R(1.0), x);
  return log_pair_of_sum(one_more.hi, one_more.lo + x_lo);
}
template <typename R>
R log1p(R x) {
  const Pair<R> value = log1p_pair(x, R(0.0));
  const auto special = !((x > -1.0) & (x < 0x1p1000));
  return unless(special, with_sign_of(value.hi + value.lo, x),
                [=] { return log(select(x < 0.0, x + 1.0, x)); });
}

}  // namespace eagle::kernel::math
