// Hand-written C++ for the benchmark of gradients: the reverse derivative of one RK4 step of the two-body
// problem.
#pragma once

#include <cstdint>

namespace eagle::bench {

// Positions, speeds and their adjoints lie component by component, each `samples` numbers.
struct TwoBodyAdjoint {
  const double* r;
  const double* v;
  const double* bar_r1;  // by the position after the step
  const double* bar_v1;
  double* bar_r;  // by the position before it
  double* bar_v;
  std::int64_t samples;
};

// (r, v) <- RK4 of r' = v, v' = -r / |r|^3 with step h, gone through backwards by hand: the acceleration's
// Jacobian is symmetric, so its product with an adjoint is -s a + 3 s (r.a) / (r.r) r with s = |r|^-3, and
// each stage needs its position and s alone. Divisions and roots are true ones, contraction is off, the loop
// is the compiler's to vectorise.
void two_body_adjoint(const TwoBodyAdjoint& samples, double h, int threads);

}  // namespace eagle::bench
