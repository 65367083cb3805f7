#include "tests/bench/gradient_twin.h"

#include <cmath>

namespace eagle::bench {
namespace {

struct Three {
  double x, y, z;
};
inline Three operator+(Three a, Three b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Three operator*(double s, Three a) { return {s * a.x, s * a.y, s * a.z}; }
inline double dot(Three a, Three b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

// Where a stage is, and what it needs to be gone through backwards.
struct Stage {
  Three r;
  double cubed;     // |r|^-3
  double quotient;  // 3 |r|^-5
};
inline Stage stage(Three r) {
  const double squared = dot(r, r);
  const double cubed = 1.0 / (squared * std::sqrt(squared));
  return {r, cubed, 3.0 * cubed / squared};
}
inline Three acceleration(const Stage& s) { return -s.cubed * s.r; }
inline Three adjoint(const Stage& s, Three bar) {
  return -s.cubed * bar + (s.quotient * dot(s.r, bar)) * s.r;
}

}  // namespace

void two_body_adjoint(const TwoBodyAdjoint& s, double h, int threads) {
  const std::int64_t n = s.samples;
  const double half = h / 2, sixth = h / 6;
#pragma omp parallel for simd num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < n; ++i) {
    const Three r{s.r[i], s.r[n + i], s.r[2 * n + i]}, v{s.v[i], s.v[n + i], s.v[2 * n + i]};
    const Three bar_r1{s.bar_r1[i], s.bar_r1[n + i], s.bar_r1[2 * n + i]};
    const Three bar_v1{s.bar_v1[i], s.bar_v1[n + i], s.bar_v1[2 * n + i]};
    const Stage s1 = stage(r);
    const Three v1 = acceleration(s1);
    const Stage s2 = stage(r + half * v);
    const Three v2 = acceleration(s2);
    const Stage s3 = stage(r + half * (v + half * v1));
    const Stage s4 = stage(r + h * (v + half * v2));

    Three bar_r = bar_r1, bar_v = bar_v1;
    Three k4r = sixth * bar_r1, k4v = sixth * bar_v1;
    Three k3r = 2.0 * k4r, k3v = 2.0 * k4v, k2r = k3r, k2v = k3v, k1r = k4r, k1v = k4v;
    const Three g4 = adjoint(s4, k4v);
    bar_r = bar_r + g4;
    k3r = k3r + h * g4;
    bar_v = bar_v + k4r;
    k3v = k3v + h * k4r;
    const Three g3 = adjoint(s3, k3v);
    bar_r = bar_r + g3;
    k2r = k2r + half * g3;
    bar_v = bar_v + k3r;
    k2v = k2v + half * k3r;
    const Three g2 = adjoint(s2, k2v);
    bar_r = bar_r + g2;
    k1r = k1r + half * g2;
    bar_v = bar_v + k2r;
    k1v = k1v + half * k2r;
    bar_r = bar_r + adjoint(s1, k1v);
    bar_v = bar_v + k1r;
    s.bar_r[i] = bar_r.x, s.bar_r[n + i] = bar_r.y, s.bar_r[2 * n + i] = bar_r.z;
    s.bar_v[i] = bar_v.x, s.bar_v[n + i] = bar_v.y, s.bar_v[2 * n + i] = bar_v.z;
  }
}

}  // namespace eagle::bench
