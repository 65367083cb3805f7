// Hand-written C++ for the stepping benchmarks: damped oscillators and satellites with an end time each.
#pragma once

#include <cstdint>

#include "tests/bench/vectors.h"

namespace eagle::bench {

struct Damped {
  double* x;
  double* v;
  double* t;
  const double* omega;
  const double* t_end;
  bool* done;
  std::int64_t samples;  // a multiple of 8
};

enum class Method {
  euler,  // undamped, explicit
  rk4,
};

// How many vectors go side by side: one waits for its own last result, many do not fit into the registers.
// What was quickest on processors with 32 registers, and on those with 16.
inline constexpr int vectors_at_once = vector_width == 8 ? 4 : 3;

// Steps every sample until t >= t_end: blocks of `copies` vectors (1 to 4) side by side with the state in
// registers, a loop without masks while all lanes are live, and one with masks until the last lane of the
// block is done. Contraction is off. Samples are taken as they lie: sort them by end time for the limit of
// what packing can reach.
void step_damped(const Damped& samples, Method method, double dt, double damping, int threads,
                 int copies = vectors_at_once);

// Positions and speeds lie component by component, each `samples` numbers.
struct Satellites {
  double* r;
  double* v;
  double* t;
  const double* t_end;
  bool* done;
  std::int64_t samples;  // a multiple of 8
};

// The two-body problem with the J2 term (mu = 1, J2 = 1e-3, radius 0.9), RK4 of step h, until t >= t_end;
// divisions and roots are true ones. In blocks as `step_damped`.
void step_two_body(const Satellites& samples, double h, int threads, int copies = 1);

}  // namespace eagle::bench
