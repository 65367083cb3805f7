#include "tests/bench/stepping_twin.h"

#include <cstring>

namespace eagle::bench {
namespace {

constexpr int width = 8;
constexpr int copies = 4;
using Vector = double __attribute__((vector_size(width * sizeof(double))));
using Mask = std::int64_t __attribute__((vector_size(width * sizeof(std::int64_t))));

Vector load(const double* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
void store(double* to, Vector value) { std::memcpy(to, &value, sizeof value); }
bool any(Mask mask) {
  std::int64_t merged = 0;
  for (int lane = 0; lane < width; ++lane) merged |= mask[lane];
  return merged != 0;
}

struct State {
  Vector x, v, t;
};

// The order of operations is the kernel's, see tests/bench/stepping.cpp.
struct Euler {
  double dt;
  State operator()(const State& s, Vector w) const {
    return {s.x + dt * s.v, s.v - dt * w * w * s.x, s.t + dt};
  }
};

struct Rk4 {
  double dt, c;
  Vector slope(Vector x, Vector v, Vector w) const { return -(w * w * x) - c * v; }
  State operator()(const State& s, Vector w) const {
    const double half = 0.5 * dt, sixth = dt / 6;
    const Vector k1x = s.v, k1v = slope(s.x, s.v, w);
    const Vector k2x = s.v + half * k1v, k2v = slope(s.x + half * k1x, s.v + half * k1v, w);
    const Vector k3x = s.v + half * k2v, k3v = slope(s.x + half * k2x, s.v + half * k2v, w);
    const Vector k4x = s.v + dt * k3v, k4v = slope(s.x + dt * k3x, s.v + dt * k3v, w);
    return {s.x + sixth * (k1x + 2.0 * k2x + 2.0 * k3x + k4x),
            s.v + sixth * (k1v + 2.0 * k2v + 2.0 * k3v + k4v), s.t + dt};
  }
};

template <typename Step>
void block(const Damped& o, std::int64_t first, const Step& step) {
  State s[copies];
  Vector w[copies], end[copies];
  Mask live[copies];
  for (int j = 0; j < copies; ++j) {
    const std::int64_t i = first + j * width;
    s[j] = {load(o.x + i), load(o.v + i), load(o.t + i)};
    w[j] = load(o.omega + i);
    end[j] = load(o.t_end + i);
    live[j] = Mask{} - 1;
  }
  bool all = true;
  while (all) {
    Mask finished{};
    for (int j = 0; j < copies; ++j) {
      s[j] = step(s[j], w[j]);
      live[j] = ~(s[j].t >= end[j]);
      finished |= ~live[j];
    }
    all = !any(finished);
  }
  while (any(live[0] | live[1] | live[2] | live[3])) {
    for (int j = 0; j < copies; ++j) {
      const State next = step(s[j], w[j]);
      s[j] = {live[j] ? next.x : s[j].x, live[j] ? next.v : s[j].v, live[j] ? next.t : s[j].t};
      live[j] &= ~(s[j].t >= end[j]);
    }
  }
  for (int j = 0; j < copies; ++j) {
    const std::int64_t i = first + j * width;
    store(o.x + i, s[j].x);
    store(o.v + i, s[j].v);
    store(o.t + i, s[j].t);
    std::memset(o.done + i, 1, width);
  }
}

template <typename Step>
void all_blocks(const Damped& o, const Step& step, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16)
  for (std::int64_t i = 0; i < o.samples; i += copies * width) block(o, i, step);
}

}  // namespace

void step_damped(const Damped& samples, Method method, double dt, double damping, int threads) {
  if (method == Method::euler) {
    all_blocks(samples, Euler{dt}, threads);
  } else {
    all_blocks(samples, Rk4{dt, damping}, threads);
  }
}

}  // namespace eagle::bench
