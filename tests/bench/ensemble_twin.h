// Hand-written C++ for the ensemble benchmark: what a careful programmer would write instead.
#pragma once

#include <cstdint>

namespace eagle::bench {

struct Oscillators {
  double* x;
  double* v;
  double* t;
  const double* omega;
  bool* done;
  std::int64_t samples;
};

// Steps every oscillator until t >= t_end or max_steps: explicit Euler, both right sides before either
// assignment. Both forms give the same bits; contraction is off.
//
// One sample after the other, as the textbook has it; the compiler may do what it can.
void plain_loop(const Oscillators& o, double dt, double t_end, std::int64_t max_steps, int threads);
// Four AVX-512 vectors side by side, the state in registers for all steps, an all-lanes-live loop without
// masks. False where this CPU or build has no AVX-512: nothing was done.
bool interleaved_loop(const Oscillators& o, double dt, double t_end, std::int64_t max_steps, int threads);

}  // namespace eagle::bench
