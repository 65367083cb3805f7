// Kernels of the suite, and what they are compared with: plain loops over the same values, compiled with
// contraction off like everything of this project.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "eagle/client/run.h"

namespace eagle::conformance {

// y = a*x + b
std::shared_ptr<const Kernel> affine();

// Explicit Euler of x'' = -omega^2 x; done when t >= t_end. State x, v, t; reads omega; Params dt, t_end.
std::shared_ptr<const Kernel> oscillator();

// n += 1, done when n >= limit. State n; Param limit. It counts its own steps.
std::shared_ptr<const Kernel> counter();

// x += what a loop of days comes to; never done. State x.
std::shared_ptr<const Kernel> days();

// turned = as many turns of a loop as `turns` says (for_years: longer than any test has), one by one.
std::shared_ptr<const Kernel> turning();
constexpr double for_years = 1e15;

// The oscillator's arrays.
struct Ensemble {
  std::vector<double> x, v, t, omega;
  std::vector<char> done;

  // x = 1, v = 0, omega from 1 to 3, and t spread a little so that samples finish at different steps.
  static Ensemble spread(std::int64_t samples);
};

struct EnsembleRun {
  std::int64_t steps = 0;     // the last step that any sample took
  std::int64_t finished = 0;  // samples that finished in it
};
// The hand-written loop, sample by sample.
EnsembleRun step(Ensemble& ensemble, double dt, double t_end, std::int64_t max_steps);

}  // namespace eagle::conformance
