// The widest vector of doubles that the build has, as the compiler's own type: operators go lane by lane.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace eagle::bench {

#if defined(__AVX512F__)
inline constexpr int vector_width = 8;
#elif defined(__AVX__)
inline constexpr int vector_width = 4;
#else
inline constexpr int vector_width = 2;
#endif
using Vector = double __attribute__((vector_size(vector_width * sizeof(double))));
using Mask = std::int64_t __attribute__((vector_size(vector_width * sizeof(std::int64_t))));

inline Vector load(const double* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline void store(double* to, Vector value) { std::memcpy(to, &value, sizeof value); }
// Past the caches where the processor can; `to` is aligned to the vector. `fence` ends a row of such stores.
inline void stream(double* to, Vector value) {
#if defined(__AVX512F__)
  _mm512_stream_pd(to, value);
#elif defined(__AVX__)
  _mm256_stream_pd(to, value);
#else
  store(to, value);
#endif
}
inline void fence() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}
inline Vector all(double value) { return Vector{} + value; }
inline Vector root(Vector value) {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_pd(0xff, value);  // g++ 12 finds its own _mm512_sqrt_pd uninitialized
#elif defined(__AVX__)
  return _mm256_sqrt_pd(value);
#else
  for (int lane = 0; lane < vector_width; ++lane) value[lane] = std::sqrt(value[lane]);
  return value;
#endif
}
inline bool any(Mask mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi64_mask(reinterpret_cast<__m512i>(mask), reinterpret_cast<__m512i>(mask)) != 0;
#elif defined(__AVX__)
  return _mm256_movemask_pd(reinterpret_cast<__m256d>(mask)) != 0;  // lanes are all ones or all zeros
#else
  return (mask[0] | mask[1]) != 0;
#endif
}

}  // namespace eagle::bench
