// The vector functions are called by their own names, so that no flag that loosens arithmetic is needed to
// reach them.
#include "tests/bench/math_twin.h"

#include <array>
#include <cmath>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#define EAGLE_VECTORS 1
#else
#define EAGLE_VECTORS 0
#endif
#if EAGLE_VECTORS && defined(EAGLE_HAVE_SLEEF)
#include <sleef.h>
#define EAGLE_SLEEF 1
#else
#define EAGLE_SLEEF 0
#endif

namespace eagle::bench {

#if EAGLE_VECTORS

#if defined(__AVX512F__)
using Vector = __m512d;
static Vector load(const double* p) { return _mm512_loadu_pd(p); }
static void store(double* p, Vector v) { _mm512_storeu_pd(p, v); }
static Vector size_of(Vector v) { return _mm512_abs_pd(v); }
static Vector filled(double v) { return _mm512_set1_pd(v); }
#define EAGLE_LIBMVEC(f, operands) _ZGVeN8##operands##_##f
#define EAGLE_SLEEF_NAME(f) Sleef_##f##d8_u10avx512f
#else
using Vector = __m256d;
static Vector load(const double* p) { return _mm256_loadu_pd(p); }
static void store(double* p, Vector v) { _mm256_storeu_pd(p, v); }
static Vector size_of(Vector v) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v); }
static Vector filled(double v) { return _mm256_set1_pd(v); }
#define EAGLE_LIBMVEC(f, operands) _ZGVdN4##operands##_##f
#define EAGLE_SLEEF_NAME(f) Sleef_##f##d4_u10avx2
#endif
static constexpr std::int64_t width = sizeof(Vector) / sizeof(double);

// libmvec has no header: these are the names of the vector ABI that glibc promises.
#define EAGLE_FUNCTIONS_OF_ONE(X)                                                                        \
  X(exp)                                                                                                 \
  X(exp2)                                                                                                \
  X(expm1) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) \
      X(tanh) X(asinh) X(acosh) X(atanh) X(erf) X(cbrt)
#define EAGLE_FUNCTIONS_OF_TWO(X) X(pow) X(atan2) X(hypot)
extern "C" {
#define EAGLE_DECLARE(f) Vector EAGLE_LIBMVEC(f, v)(Vector);
EAGLE_FUNCTIONS_OF_ONE(EAGLE_DECLARE)
#undef EAGLE_DECLARE
#define EAGLE_DECLARE(f) Vector EAGLE_LIBMVEC(f, vv)(Vector, Vector);
EAGLE_FUNCTIONS_OF_TWO(EAGLE_DECLARE)
#undef EAGLE_DECLARE
}

namespace {

template <typename F>
void for_each_vector(const double* a, const double* b, double* y, std::int64_t n, F f) {
  for (std::int64_t i = 0; i + width <= n; i += width) store(y + i, f(load(a + i), load(b + i)));
}
#define EAGLE_OF_ONE(f)                                                 \
  [](const double* a, const double* b, double* y, std::int64_t n) {     \
    for_each_vector(a, b, y, n, [](Vector v, Vector) { return f(v); }); \
  }
#define EAGLE_OF_TWO(f)                                                      \
  [](const double* a, const double* b, double* y, std::int64_t n) {          \
    for_each_vector(a, b, y, n, [](Vector v, Vector w) { return f(v, w); }); \
  }

}  // namespace

void mixed_libmvec(const double* x, double* y, std::int64_t n) {
  const Vector power = filled(0.3);
  for (std::int64_t i = 0; i + width <= n; i += width) {
    const Vector v = load(x + i), size = size_of(v);
    store(y + i, EAGLE_LIBMVEC(sin, v)(v) * EAGLE_LIBMVEC(exp, v)(-(v * v)) +
                     EAGLE_LIBMVEC(log1p, v)(size) * EAGLE_LIBMVEC(tanh, v)(v) +
                     EAGLE_LIBMVEC(pow, vv)(size, power));
  }
}

#if EAGLE_SLEEF
bool mixed_sleef(const double* x, double* y, std::int64_t n) {
  const Vector power = filled(0.3);
  for (std::int64_t i = 0; i + width <= n; i += width) {
    const Vector v = load(x + i), size = size_of(v);
    store(y + i, EAGLE_SLEEF_NAME(sin)(v) * EAGLE_SLEEF_NAME(exp)(-(v * v)) +
                     EAGLE_SLEEF_NAME(log1p)(size) * EAGLE_SLEEF_NAME(tanh)(v) +
                     EAGLE_SLEEF_NAME(pow)(size, power));
  }
  return true;
}
#define EAGLE_ONE(f) ArrayFunction{#f, EAGLE_OF_ONE(EAGLE_LIBMVEC(f, v)), EAGLE_OF_ONE(EAGLE_SLEEF_NAME(f))},
#define EAGLE_TWO(f) ArrayFunction{#f, EAGLE_OF_TWO(EAGLE_LIBMVEC(f, vv)), EAGLE_OF_TWO(EAGLE_SLEEF_NAME(f))},
#define Sleef_hypotd8_u10avx512f Sleef_hypotd8_u05avx512f  // SLEEF's hypot of 1 ulp does not exist
#define Sleef_hypotd4_u10avx2 Sleef_hypotd4_u05avx2
#else
bool mixed_sleef(const double*, double*, std::int64_t) { return false; }
#define EAGLE_ONE(f) ArrayFunction{#f, EAGLE_OF_ONE(EAGLE_LIBMVEC(f, v)), nullptr},
#define EAGLE_TWO(f) ArrayFunction{#f, EAGLE_OF_TWO(EAGLE_LIBMVEC(f, vv)), nullptr},
#endif

std::span<const ArrayFunction> array_functions() {
  static const std::array functions = {EAGLE_FUNCTIONS_OF_ONE(EAGLE_ONE) EAGLE_FUNCTIONS_OF_TWO(EAGLE_TWO)};
  return functions;
}

#else  // no vectors: the C library, one number at a time

void mixed_libmvec(const double* x, double* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double v = x[i], size = std::fabs(v);
    y[i] = std::sin(v) * std::exp(-v * v) + std::log1p(size) * std::tanh(v) + std::pow(size, 0.3);
  }
}
bool mixed_sleef(const double*, double*, std::int64_t) { return false; }
std::span<const ArrayFunction> array_functions() { return {}; }

#endif

}  // namespace eagle::bench
