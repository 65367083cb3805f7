// Hand-written C++ for the stepping benchmark: damped oscillators with an end time each.
#pragma once

#include <cstdint>

namespace eagle::bench {

struct Damped {
  double* x;
  double* v;
  double* t;
  const double* omega;
  const double* t_end;
  bool* done;
  std::int64_t samples;  // a multiple of 32
};

enum class Method {
  euler,  // undamped, explicit
  rk4,
};

// Steps every sample until t >= t_end: blocks of four vectors side by side with the state in registers, a
// loop without masks while all lanes are live, and one with masks until the last lane of the block is done.
// Contraction is off. Samples are taken as they lie: sort them by end time for the limit of what packing can
// reach.
void step_damped(const Damped& samples, Method method, double dt, double damping, int threads);

}  // namespace eagle::bench
