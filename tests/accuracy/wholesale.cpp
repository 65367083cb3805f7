// Compiled for this machine's vectors. The vector functions are called by their own names, the ones of the
// vector ABI that glibc promises, so that no flag that loosens arithmetic is needed to reach them.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "tests/accuracy/estimate.h"

#if defined(EAGLE_HAVE_MVEC) && (defined(__AVX512F__) || defined(__AVX2__))
#include <immintrin.h>
#define EAGLE_VECTORS 1
#else
#define EAGLE_VECTORS 0
#endif

// clang-format off
#define EAGLE_FUNCTIONS(X) \
  X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(erf) X(erfc) X(sin) X(cos) X(tan) \
  X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(cbrt)
// clang-format on

namespace eagle::accuracy {

#if EAGLE_VECTORS
#if defined(__AVX512F__)
using Vector = __m512d;
#define EAGLE_MVEC(f) _ZGVeN8v_##f
#else
using Vector = __m256d;
#define EAGLE_MVEC(f) _ZGVdN4v_##f
#endif
#define EAGLE_WORK(f) vectors(a, y, [](Vector v) { return EAGLE_MVEC(f)(v); })
extern "C" {
#define EAGLE_DECLARE(f) Vector EAGLE_MVEC(f)(Vector);
EAGLE_FUNCTIONS(EAGLE_DECLARE)
#undef EAGLE_DECLARE
}
#else
#define EAGLE_WORK(f) std::transform(a, a + block, y, [](double x) { return std::f(x); })
#endif
#define EAGLE_CASE(f)                                                                         \
  case Opcode::f:                                                                             \
    return [](Numbers operands, Results results) {                                            \
      apply<Opcode::f>(operands, results, [](const double* a, double* y) { EAGLE_WORK(f); }); \
    };

namespace {

using kernel::Opcode;
using Numbers = std::span<const double>;
using Results = std::span<double>;

// Where a function tells one single from another. Numbers beyond an end give what the end does, rounded to
// single precision, or NaN: those are what vector functions are slow at.
struct Domain {
  double low, high;
  bool beyond_is_nan = false;
};
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Domain domain_of(Opcode code) {
  switch (code) {
    case Opcode::exp:
    case Opcode::exp2:
    case Opcode::expm1:
    case Opcode::sinh:
    case Opcode::cosh:
    case Opcode::tanh:
    case Opcode::erf:
      return {-300, 300};
    case Opcode::erfc:
      return {-12, 12};
    case Opcode::log:
    case Opcode::log2:
    case Opcode::log10:
      return {-0.0, infinity, true};
    case Opcode::log1p:
      return {-1, infinity, true};
    case Opcode::asin:
    case Opcode::acos:
    case Opcode::atanh:
      return {-1, 1, true};
    case Opcode::acosh:
      return {1, infinity, true};
    default:
      return {-infinity, infinity};
  }
}

constexpr std::size_t block = 256;  // a whole number of vectors

template <Opcode code, typename F>
void apply(Numbers operands, Results results, F f) {
  constexpr Domain domain = domain_of(code);
  std::array<double, block> x, y;
  for (std::size_t at = 0; at < operands.size(); at += block) {
    const std::size_t n = std::min(block, operands.size() - at);
    for (std::size_t i = 0; i < n; ++i) {
      const double a = operands[at + i];
      const double above = a < domain.low ? domain.low : a;
      x[i] = above > domain.high ? domain.high : above;
    }
    for (std::size_t i = n; i < block; ++i) x[i] = 1;
    f(x.data(), y.data());
    for (std::size_t i = 0; i < n; ++i) {
      const double a = operands[at + i];
      const bool beyond = domain.beyond_is_nan && (a < domain.low || a > domain.high);
      results[at + i] = beyond ? std::numeric_limits<double>::quiet_NaN() : y[i];
    }
  }
}

#if EAGLE_VECTORS
template <typename F>
void vectors(const double* a, double* y, F f) {
  for (std::size_t i = 0; i < block; i += sizeof(Vector) / sizeof(double)) {
    Vector v;
    std::memcpy(&v, a + i, sizeof v);
    v = f(v);
    std::memcpy(y + i, &v, sizeof v);
  }
}
#endif

void reciprocal_roots(Numbers a, Results y) {
  for (std::size_t i = 0; i < a.size(); ++i) y[i] = 1.0 / std::sqrt(a[i]);
}

// Without a branch, for vectors. Singles and what they give are never subnormal doubles, unless they are
// below every single anyway.
double error(float found_single, double wanted) {
  const auto found = static_cast<double>(found_single);
  const auto found_bits = std::bit_cast<std::int64_t>(found),
             wanted_bits = std::bit_cast<std::int64_t>(wanted);
  // A little below, since just under a power of two units are half of what they are above.
  const auto below = std::bit_cast<std::int64_t>(std::fabs(wanted) * (1 - 0x1p-48));
  const std::int64_t exponent = std::max<std::int64_t>(below >> 52, 1023 - 126);
  const auto units = std::bit_cast<double>((2 * 1023 + 23 - exponent) << 52);
  double result = std::fabs(found - wanted) * units;
  result = (found_bits ^ wanted_bits) < 0 ? infinity : result;
  result = static_cast<float>(wanted) == found_single && std::fabs(found) == infinity ? 0 : result;
  const bool nothing = found != found, nothing_wanted = wanted != wanted;
  result = nothing != nothing_wanted ? infinity : result;
  return nothing && nothing_wanted ? 0 : result;
}

}  // namespace

Wholesale wholesale(Opcode code) {
  switch (code) {
    EAGLE_FUNCTIONS(EAGLE_CASE)
    default:
      return reciprocal_roots;
  }
}

Parity parity_of(Opcode code) {
  switch (code) {
    case Opcode::cos:
    case Opcode::cosh:
      return Parity::even;
    case Opcode::sin:
    case Opcode::tan:
    case Opcode::asin:
    case Opcode::atan:
    case Opcode::sinh:
    case Opcode::tanh:
    case Opcode::asinh:
    case Opcode::atanh:
    case Opcode::erf:
    case Opcode::cbrt:
      return Parity::odd;
    default:
      return Parity::none;
  }
}

double estimate_singles(std::span<const float> found, std::span<const double> results,
                        std::span<double> errors) {
  // As bits, which compare as these numbers do and have an order that is open.
  std::int64_t most = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    errors[i] = error(found[i], results[i]);
    most = std::max(most, std::bit_cast<std::int64_t>(errors[i]));
  }
  return std::bit_cast<double>(most);
}

}  // namespace eagle::accuracy
