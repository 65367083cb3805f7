#include "tests/conformance/models.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "eagle/client/kernel_builder.h"

namespace eagle::conformance {
namespace {

std::shared_ptr<const Kernel> finish(KernelBuilder& builder) {
  StatusOr<Kernel> kernel = builder.finish();
  if (!kernel.ok()) std::abort();
  return std::make_shared<const Kernel>(std::move(*kernel));
}

}  // namespace

std::shared_ptr<const Kernel> affine() {
  KernelBuilder k("affine");
  const auto x = k.scalar("x");
  const auto a = k.param("a");
  const auto b = k.param("b");
  k.output("y", k.add(k.mul(a, x), b));
  return finish(k);
}

std::shared_ptr<const Kernel> oscillator() {
  KernelBuilder k("oscillator");
  const auto x = k.state("x", {});
  const auto v = k.state("v", {});
  const auto t = k.state("t", {});
  const auto omega = k.scalar("omega");
  const auto dt = k.param("dt");
  const auto t_end = k.param("t_end");
  k.terminated("done");
  const auto next = k.add(t, dt);
  k.commit("x", k.add(x, k.mul(dt, v)));
  k.commit("v", k.sub(v, k.mul(k.mul(k.mul(dt, omega), omega), x)));
  k.commit("t", next);
  k.commit("done", k.ge(next, t_end));
  return finish(k);
}

std::shared_ptr<const Kernel> counter() {
  KernelBuilder k("counter");
  const auto n = k.state("n", {});
  const auto limit = k.param("limit");
  k.terminated("done");
  const auto next = k.add(n, k.real(1));
  k.commit("n", next);
  k.commit("done", k.ge(next, limit));
  return finish(k);
}

std::shared_ptr<const Kernel> days() {
  KernelBuilder k("days");
  const auto x = k.state("x", {});
  k.terminated("done");
  auto carried = k.begin_while({k.integer(0)}, std::uint64_t{1} << 40);
  carried = k.while_condition(k.ge(carried[0], k.integer(0)));
  carried = k.end_while({k.add(carried[0], k.integer(1))});
  k.commit("x", k.add(x, k.convert(carried[0], kernel::Scalar::f64)));
  k.commit("done", k.boolean(false));
  return finish(k);
}

std::shared_ptr<const Kernel> turning() {
  KernelBuilder k("turning");
  const auto turns = k.scalar("turns");
  auto carried = k.begin_while({k.real(0)}, std::uint64_t{1} << 40);
  carried = k.while_condition(k.lt(carried[0], turns));
  carried = k.end_while({k.add(carried[0], k.real(1))});
  k.output("turned", carried[0]);
  return finish(k);
}

Ensemble Ensemble::spread(std::int64_t samples) {
  const auto n = static_cast<std::size_t>(samples);
  Ensemble ensemble{std::vector<double>(n, 1.0), std::vector<double>(n), std::vector<double>(n),
                    std::vector<double>(n), std::vector<char>(n)};
  for (std::size_t i = 0; i < n; ++i) {
    ensemble.omega[i] = 1.0 + 2.0 * static_cast<double>(i) / static_cast<double>(n);
    ensemble.t[i] = 1e-3 * static_cast<double>(i % 97);
  }
  return ensemble;
}

EnsembleRun step(Ensemble& ensemble, double dt, double t_end, std::int64_t max_steps) {
  EnsembleRun run;
  for (std::size_t i = 0; i < ensemble.x.size(); ++i) {
    double& x = ensemble.x[i];
    double& v = ensemble.v[i];
    double& t = ensemble.t[i];
    const double w = ensemble.omega[i];
    std::int64_t steps = 0;
    while (!ensemble.done[i] && steps < max_steps) {
      const double next_x = x + dt * v;
      v = v - dt * w * w * x;
      x = next_x;
      t = t + dt;
      ++steps;
      if (t >= t_end) {
        ensemble.done[i] = 1;
        ++run.finished;
      }
    }
    run.steps = std::max(run.steps, steps);
  }
  return run;
}

}  // namespace eagle::conformance
