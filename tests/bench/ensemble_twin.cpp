#include "tests/bench/ensemble_twin.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace eagle::bench {
namespace {

void one(const Oscillators& o, std::int64_t i, double dt, double t_end, std::int64_t max_steps) {
  double x = o.x[i], v = o.v[i], t = o.t[i];
  bool done = o.done[i];
  const double w = o.omega[i];
  for (std::int64_t step = 0; step < max_steps && !done; ++step) {
    const double next = x + dt * v;
    v = v - dt * w * w * x;
    x = next;
    t = t + dt;
    done = t >= t_end;
  }
  o.x[i] = x;
  o.v[i] = v;
  o.t[i] = t;
  o.done[i] = done;
}

#if defined(__AVX512F__)
constexpr int copies = 4;
constexpr int width = 8;

// One block of 32 samples whose lanes are all live at the start.
void block(const Oscillators& o, std::int64_t i, double dt, double t_end, std::int64_t max_steps) {
  const __m512d step = _mm512_set1_pd(dt), end = _mm512_set1_pd(t_end);
  __m512d x[copies], v[copies], t[copies], k[copies];
  for (int j = 0; j < copies; ++j) {
    x[j] = _mm512_loadu_pd(o.x + i + width * j);
    v[j] = _mm512_loadu_pd(o.v + i + width * j);
    t[j] = _mm512_loadu_pd(o.t + i + width * j);
    const __m512d w = _mm512_loadu_pd(o.omega + i + width * j);
    k[j] = _mm512_mul_pd(_mm512_mul_pd(step, w), w);
  }
  __mmask8 live[copies] = {0xff, 0xff, 0xff, 0xff};
  std::int64_t taken = 0;
  unsigned finished = 0;
  while (finished == 0 && taken < max_steps) {
    for (int j = 0; j < copies; ++j) {
      const __m512d next = _mm512_add_pd(x[j], _mm512_mul_pd(step, v[j]));
      v[j] = _mm512_sub_pd(v[j], _mm512_mul_pd(k[j], x[j]));
      x[j] = next;
      t[j] = _mm512_add_pd(t[j], step);
      live[j] = _mm512_cmp_pd_mask(t[j], end, _CMP_NGE_UQ);
      finished |= static_cast<unsigned>(live[j] ^ 0xff);
    }
    ++taken;
  }
  while ((live[0] | live[1] | live[2] | live[3]) != 0 && taken < max_steps) {
    for (int j = 0; j < copies; ++j) {
      const __m512d next = _mm512_add_pd(x[j], _mm512_mul_pd(step, v[j]));
      v[j] = _mm512_mask_sub_pd(v[j], live[j], v[j], _mm512_mul_pd(k[j], x[j]));
      x[j] = _mm512_mask_mov_pd(x[j], live[j], next);
      t[j] = _mm512_mask_add_pd(t[j], live[j], t[j], step);
      live[j] = _mm512_mask_cmp_pd_mask(live[j], t[j], end, _CMP_NGE_UQ);
    }
    ++taken;
  }
  for (int j = 0; j < copies; ++j) {
    _mm512_storeu_pd(o.x + i + width * j, x[j]);
    _mm512_storeu_pd(o.v + i + width * j, v[j]);
    _mm512_storeu_pd(o.t + i + width * j, t[j]);
    for (int lane = 0; lane < width; ++lane) o.done[i + width * j + lane] = ((live[j] >> lane) & 1) == 0;
  }
}
#endif

}  // namespace

void plain_loop(const Oscillators& o, double dt, double t_end, std::int64_t max_steps, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < o.samples; ++i) one(o, i, dt, t_end, max_steps);
}

bool interleaved_loop(const Oscillators& o, double dt, double t_end, std::int64_t max_steps, int threads) {
#if defined(__AVX512F__)
  constexpr int lanes = copies * width;
  const std::int64_t blocks = o.samples / lanes;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t b = 0; b < blocks; ++b) block(o, b * lanes, dt, t_end, max_steps);
  for (std::int64_t i = blocks * lanes; i < o.samples; ++i) one(o, i, dt, t_end, max_steps);
  return true;
#else
  (void)o, (void)dt, (void)t_end, (void)max_steps, (void)threads;
  return false;
#endif
}

}  // namespace eagle::bench
