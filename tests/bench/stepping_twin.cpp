#include "tests/bench/stepping_twin.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "tests/bench/vectors.h"

namespace eagle::bench {
namespace {

constexpr std::size_t sizes = 2;

// State of a damped oscillator: position and speed. The order of operations is the kernel's, see
// tests/bench/stepping.cpp and tests/bench/cases/oscillators.py.
struct Euler {
  static constexpr std::size_t size = sizes;
  double dt;
  void operator()(Vector (&s)[size], Vector w) const {
    const Vector x = s[0] + dt * s[1];
    s[1] = s[1] - dt * w * w * s[0];
    s[0] = x;
  }
};

struct Rk4 {
  static constexpr std::size_t size = sizes;
  double dt, c;
  Vector slope(Vector x, Vector v, Vector w) const { return -(w * w * x) - c * v; }
  void operator()(Vector (&s)[size], Vector w) const {
    const double half = 0.5 * dt, sixth = dt / 6;
    const Vector x = s[0], v = s[1];
    const Vector k1x = v, k1v = slope(x, v, w);
    const Vector k2x = v + half * k1v, k2v = slope(x + half * k1x, v + half * k1v, w);
    const Vector k3x = v + half * k2v, k3v = slope(x + half * k2x, v + half * k2v, w);
    const Vector k4x = v + dt * k3v, k4v = slope(x + dt * k3x, v + dt * k3v, w);
    s[0] = x + sixth * (k1x + 2.0 * k2x + 2.0 * k3x + k4x);
    s[1] = v + sixth * (k1v + 2.0 * k2v + 2.0 * k3v + k4v);
  }
};

// A satellite under gravity with the J2 term: three positions, three speeds; tests/bench/cases/two_body.py.
struct TwoBody {
  static constexpr std::size_t size = 6;
  double h;

  static void acceleration(const Vector (&r)[3], Vector (&a)[3]) {
    constexpr double mu = 1.0, j2 = 1e-3, radius = 0.9;
    const Vector squared = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    const Vector distance = root(squared);
    const Vector ratio = 5.0 * r[2] * r[2] / squared;
    const Vector factor = 1.5 * j2 * mu * radius * radius / (squared * squared * distance);
    const Vector point = -mu / (squared * distance);
    a[0] = point * r[0] + factor * r[0] * (ratio - 1.0);
    a[1] = point * r[1] + factor * r[1] * (ratio - 1.0);
    a[2] = point * r[2] + factor * r[2] * (ratio - 3.0);
  }
  void operator()(Vector (&s)[size], Vector) const {
    const double half = h / 2, sixth = h / 6;
    Vector k1v[3], k2r[3], k2v[3], k3r[3], k3v[3], k4r[3], k4v[3], at[3];
    const Vector r[3] = {s[0], s[1], s[2]}, v[3] = {s[3], s[4], s[5]};
    acceleration(r, k1v);
    for (int i = 0; i < 3; ++i) k2r[i] = v[i] + half * k1v[i], at[i] = r[i] + half * v[i];
    acceleration(at, k2v);
    for (int i = 0; i < 3; ++i) k3r[i] = v[i] + half * k2v[i], at[i] = r[i] + half * k2r[i];
    acceleration(at, k3v);
    for (int i = 0; i < 3; ++i) k4r[i] = v[i] + h * k3v[i], at[i] = r[i] + h * k3r[i];
    acceleration(at, k4v);
    for (int i = 0; i < 3; ++i) {
      s[i] = r[i] + sixth * (v[i] + 2.0 * k2r[i] + 2.0 * k3r[i] + k4r[i]);
      s[3 + i] = v[i] + sixth * (k1v[i] + 2.0 * k2v[i] + 2.0 * k3v[i] + k4v[i]);
    }
  }
};

// What all models have: state planes, a time, a parameter and an end for each sample.
template <std::size_t size>
struct Planes {
  std::array<double*, size> state;
  double* t;
  const double* w;
  const double* end;
  bool* done;
};

// `copies` vectors of samples from `first` on, until the last lane is done.
template <int copies, typename Step>
void block(const Planes<Step::size>& o, double dt, std::int64_t first, const Step& step) {
  Vector s[copies][Step::size], t[copies], w[copies], end[copies];
  Mask live[copies];
  for (int j = 0; j < copies; ++j) {
    const std::int64_t i = first + j * vector_width;
    for (std::size_t k = 0; k < Step::size; ++k) s[j][k] = load(o.state[k] + i);
    t[j] = load(o.t + i);
    w[j] = load(o.w + i);
    end[j] = load(o.end + i);
    live[j] = Mask{} - 1;
  }
  bool whole = true;
  while (whole) {
    Mask finished{};
    for (int j = 0; j < copies; ++j) {
      step(s[j], w[j]);
      t[j] = t[j] + dt;
      live[j] = ~(t[j] >= end[j]);
      finished |= ~live[j];
    }
    whole = !any(finished);
  }
  const auto some = [&] {
    Mask merged{};
    for (int j = 0; j < copies; ++j) merged |= live[j];
    return any(merged);
  };
  while (some()) {
    for (int j = 0; j < copies; ++j) {
      Vector next[Step::size];
      std::memcpy(next, s[j], sizeof next);
      step(next, w[j]);
      for (std::size_t k = 0; k < Step::size; ++k) s[j][k] = live[j] ? next[k] : s[j][k];
      t[j] = live[j] ? t[j] + dt : t[j];
      live[j] &= ~(t[j] >= end[j]);
    }
  }
  for (int j = 0; j < copies; ++j) {
    const std::int64_t i = first + j * vector_width;
    for (std::size_t k = 0; k < Step::size; ++k) store(o.state[k] + i, s[j][k]);
    store(o.t + i, t[j]);
    std::memset(o.done + i, 1, vector_width);
  }
}

template <int copies, typename Step>
void all_blocks(const Planes<Step::size>& o, std::int64_t samples, double dt, const Step& step, int threads) {
  constexpr std::int64_t lanes = copies * vector_width;
  const std::int64_t blocks = samples / lanes;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16)
  for (std::int64_t b = 0; b < blocks; ++b) block<copies>(o, dt, b * lanes, step);
  for (std::int64_t i = blocks * lanes; i < samples; i += vector_width) block<1>(o, dt, i, step);
}

template <typename Step>
void run(const Planes<Step::size>& o, std::int64_t samples, double dt, const Step& step, int threads,
         int copies) {
  switch (copies) {
    case 1:
      return all_blocks<1>(o, samples, dt, step, threads);
    case 2:
      return all_blocks<2>(o, samples, dt, step, threads);
    case 3:
      return all_blocks<3>(o, samples, dt, step, threads);
    default:
      return all_blocks<4>(o, samples, dt, step, threads);
  }
}

}  // namespace

void step_damped(const Damped& samples, Method method, double dt, double damping, int threads, int copies) {
  const Planes<sizes> planes = {
      {samples.x, samples.v}, samples.t, samples.omega, samples.t_end, samples.done};
  if (method == Method::euler) {
    run(planes, samples.samples, dt, Euler{dt}, threads, copies);
  } else {
    run(planes, samples.samples, dt, Rk4{dt, damping}, threads, copies);
  }
}

void step_two_body(const Satellites& samples, double h, int threads, int copies) {
  const std::int64_t n = samples.samples;
  const Planes<6> planes = {
      {samples.r, samples.r + n, samples.r + 2 * n, samples.v, samples.v + n, samples.v + 2 * n},
      samples.t,
      samples.t_end,  // the model has no parameter
      samples.t_end,
      samples.done};
  run(planes, n, h, TwoBody{h}, threads, copies);
}

}  // namespace eagle::bench
