// A number that the functions of this folder compute with, in its plainest form: one double.
//
// Every function here is a template over a type R like `Real`. The compile helper has another one, whose
// values are lanes being emitted (engine/codegen/lane_number.h), so that the interpreter and compiled code
// run the same algorithm and give the same bits. What R offers, and nothing else may be used on it:
//
//   R        + - * / and unary -, each rounded once; comparisons, which give Truth; implicit from double
//   Integer  64 bits, wrapping: + - * & | ^, << and >> by a constant (>> fills with zeros), signed
//   comparisons Truth    & | ^ ! fma, sqrt, magnitude, with_sign_of (of a NaN too), round_down, round_up,
//   round_to_zero, round_to_even, each exact as IEEE 754 has it bits, from_bits, arithmetic_shift,
//   shift_left, shift_right, below (unsigned), select look_up(table, index): entry `index` modulo the table's
//   length, which is a power of two unless(special, usual, slow): `slow()` in the lanes where `special`
//   holds, else `usual`. Lanes test whether
//     any of them is special, so that nothing is spent on `slow` where none is.
//   repeat(most, state, again, step): while `again(state)`, at most `most` times, `step(state)`
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace eagle::kernel::math {

struct RealTruth {
  bool value;
};
inline RealTruth operator&(RealTruth a, RealTruth b) { return {a.value && b.value}; }
inline RealTruth operator|(RealTruth a, RealTruth b) { return {a.value || b.value}; }
inline RealTruth operator^(RealTruth a, RealTruth b) { return {a.value != b.value}; }
inline RealTruth operator!(RealTruth a) { return {!a.value}; }

struct RealInteger {
  std::uint64_t value;
  RealInteger(std::uint64_t v = 0) : value(v) {}  // NOLINT: constants are written as numbers
};
inline RealInteger operator+(RealInteger a, RealInteger b) { return a.value + b.value; }
inline RealInteger operator-(RealInteger a, RealInteger b) { return a.value - b.value; }
inline RealInteger operator-(RealInteger a) { return 0 - a.value; }
inline RealInteger operator*(RealInteger a, RealInteger b) { return a.value * b.value; }
inline RealInteger operator&(RealInteger a, RealInteger b) { return a.value & b.value; }
inline RealInteger operator|(RealInteger a, RealInteger b) { return a.value | b.value; }
inline RealInteger operator^(RealInteger a, RealInteger b) { return a.value ^ b.value; }
inline RealInteger operator<<(RealInteger a, int count) { return a.value << count; }
inline RealInteger operator>>(RealInteger a, int count) { return a.value >> count; }
inline RealInteger arithmetic_shift(RealInteger a, int count) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(a.value) >> count);
}
inline RealInteger shift_left(RealInteger a, RealInteger count) { return a.value << count.value; }
inline RealInteger shift_right(RealInteger a, RealInteger count) { return a.value >> count.value; }
inline RealTruth operator<(RealInteger a, RealInteger b) {
  return {static_cast<std::int64_t>(a.value) < static_cast<std::int64_t>(b.value)};
}
inline RealTruth operator>(RealInteger a, RealInteger b) { return b < a; }
inline RealTruth operator==(RealInteger a, RealInteger b) { return {a.value == b.value}; }
inline RealTruth below(RealInteger a, RealInteger b) { return {a.value < b.value}; }

struct Real {
  using Integer = RealInteger;
  using Truth = RealTruth;
  double value;
  Real(double v = 0.0) : value(v) {}  // NOLINT: constants are written as numbers
};
inline Real operator+(Real a, Real b) { return a.value + b.value; }
inline Real operator-(Real a, Real b) { return a.value - b.value; }
inline Real operator*(Real a, Real b) { return a.value * b.value; }
inline Real operator/(Real a, Real b) { return a.value / b.value; }
inline Real operator-(Real a) { return -a.value; }
inline RealTruth operator<(Real a, Real b) { return {a.value < b.value}; }
inline RealTruth operator<=(Real a, Real b) { return {a.value <= b.value}; }
inline RealTruth operator>(Real a, Real b) { return {a.value > b.value}; }
inline RealTruth operator>=(Real a, Real b) { return {a.value >= b.value}; }
inline RealTruth operator==(Real a, Real b) { return {a.value == b.value}; }
inline RealTruth operator!=(Real a, Real b) { return {a.value != b.value}; }
inline Real fma(Real a, Real b, Real c) { return std::fma(a.value, b.value, c.value); }
inline Real sqrt(Real a) { return std::sqrt(a.value); }
inline Real magnitude(Real a) { return std::fabs(a.value); }
inline Real with_sign_of(Real a, Real sign) { return std::copysign(a.value, sign.value); }
inline Real round_down(Real a) { return std::floor(a.value); }
inline Real round_up(Real a) { return std::ceil(a.value); }
inline Real round_to_zero(Real a) { return std::trunc(a.value); }
inline Real round_to_even(Real a) { return std::nearbyint(a.value); }
inline RealInteger bits(Real a) { return std::bit_cast<std::uint64_t>(a.value); }
inline Real from_bits(RealInteger a) { return std::bit_cast<double>(a.value); }
inline Real select(RealTruth c, Real a, Real b) { return c.value ? a : b; }
inline RealInteger select(RealTruth c, RealInteger a, RealInteger b) { return c.value ? a : b; }

template <std::size_t N>
Real look_up(const std::array<double, N>& table, RealInteger index) {
  static_assert(std::has_single_bit(N));
  return table[index.value & (N - 1)];
}
template <std::size_t N>
RealInteger look_up(const std::array<std::uint64_t, N>& table, RealInteger index) {
  static_assert(std::has_single_bit(N));
  return table[index.value & (N - 1)];
}

template <typename Slow>
Real unless(RealTruth special, Real usual, Slow slow) {
  return special.value ? slow() : usual;
}

// A remainder in the making; `Progress<R>` for lanes too.
template <typename R>
struct Progress {
  R rest;
  typename R::Integer left;
};
template <typename Again, typename Step>
Progress<Real> repeat(int most, Progress<Real> state, Again again, Step step) {
  for (int trip = 0; trip < most && again(state).value; ++trip) state = step(state);
  return state;
}

}  // namespace eagle::kernel::math
