// Stepping until samples finish, together and spread over the run, next to a hand-written loop.
//
//   build/release/bin/bench_stepping [--samples N] [--repeats R] [--threads T] [--check]
//
// Lines 6 to 8 of docs/measurements: an oscillator and an RK4 damped one, 1,000 steps. The twin of a spread
// run is given its samples sorted by end time, which is what packing can reach at best. Forms run in turn;
// minimum and median are printed, and the ratio of minima. Answers are compared bit for bit. --check: fails
// where a ratio is over its bound.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "eagle/client/kernel_builder.h"
#include "eagle/client/session.h"
#include "tests/bench/need.h"
#include "tests/bench/stepping_twin.h"

namespace {

using namespace eagle;
using bench::die;
using bench::Method;
using bench::need;

constexpr double dt = 1e-3;
constexpr double damping = 0.1;

std::shared_ptr<const Kernel> kernel_of(Method method) {
  KernelBuilder b(method == Method::euler ? "oscillator" : "rk4");
  using Value = KernelBuilder::Value;
  const auto x = b.state("x", {}), v = b.state("v", {}), t = b.state("t", {});
  const auto omega = b.scalar("omega"), t_end = b.scalar("t_end");
  const auto step = b.param("dt"), c = b.param("c");
  b.terminated("done");
  const auto plus = [&](Value a, Value k, Value y) { return b.add(a, b.mul(k, y)); };
  if (method == Method::euler) {
    b.commit("x", plus(x, step, v));
    b.commit("v", b.sub(v, b.mul(b.mul(b.mul(step, omega), omega), x)));
  } else {
    const auto slope = [&](Value at, Value speed) {
      return b.sub(b.neg(b.mul(b.mul(omega, omega), at)), b.mul(c, speed));
    };
    const auto half = b.mul(b.real(0.5), step), sixth = b.div(step, b.real(6)), two = b.real(2);
    const auto k1x = v, k1v = slope(x, v);
    const auto k2x = plus(v, half, k1v), k2v = slope(plus(x, half, k1x), plus(v, half, k1v));
    const auto k3x = plus(v, half, k2v), k3v = slope(plus(x, half, k2x), plus(v, half, k2v));
    const auto k4x = plus(v, step, k3v), k4v = slope(plus(x, step, k3x), plus(v, step, k3v));
    const auto sum = [&](Value a, Value p, Value q, Value r) {
      return b.add(b.add(b.add(a, b.mul(two, p)), b.mul(two, q)), r);
    };
    b.commit("x", plus(x, sixth, sum(k1x, k2x, k3x, k4x)));
    b.commit("v", plus(v, sixth, sum(k1v, k2v, k3v, k4v)));
  }
  const auto later = b.add(t, step);
  b.commit("t", later);
  b.commit("done", b.ge(later, t_end));
  return std::make_shared<const Kernel>(need(b.finish()));
}

struct Arrays {
  Array<double> x, v, t, omega, t_end;
  Array<bool> done;

  Arrays(const Session& s, std::int64_t n)
      : x(need(s.zeros<double>({n}))),
        v(need(s.zeros<double>({n}))),
        t(need(s.zeros<double>({n}))),
        omega(need(s.zeros<double>({n}))),
        t_end(need(s.zeros<double>({n}))),
        done(need(s.zeros<bool>({n}))) {}

  void reset(const std::vector<double>& omegas, const std::vector<double>& ends) const {
    std::ranges::fill(x.span(), 1.0);
    std::ranges::fill(v.span(), 0.0);
    std::ranges::fill(t.span(), 0.0);
    std::ranges::fill(done.span(), false);
    std::ranges::copy(omegas, omega.span().begin());
    std::ranges::copy(ends, t_end.span().begin());
  }
};

struct Times {
  std::vector<double> seconds;
  void add(double s) { seconds.push_back(s); }
  [[nodiscard]] double least() const { return *std::ranges::min_element(seconds); }
  [[nodiscard]] double median() const {
    std::vector<double> sorted = seconds;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};

struct Case {
  std::string name;
  Method method;
  bool spread;
  double bound;  // of the ratio of minima
};

// Runs a case in turn with its twin; whether the ratio stays within the bound.
bool run_case(const Session& session, const Case& c, std::int64_t n, int repeats, int threads) {
  std::vector<double> omegas(static_cast<std::size_t>(n)), ends(omegas.size(), 1.0);
  std::mt19937_64 random(20'261'129);
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  for (std::size_t i = 0; i < omegas.size(); ++i) {
    omegas[i] = 1.0 + 2.0 * static_cast<double>(i) / static_cast<double>(n);
    if (c.spread) ends[i] = 1.0 - unit(random);
  }
  std::vector<std::size_t> order(omegas.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(
      order, [&](std::size_t a, std::size_t b) { return std::pair(ends[a], a) < std::pair(ends[b], b); });
  std::vector<double> sorted_omegas, sorted_ends;
  for (const std::size_t i : order) {
    sorted_omegas.push_back(omegas[i]);
    sorted_ends.push_back(ends[i]);
  }

  const auto kernel = kernel_of(c.method);
  const Arrays ours(session, n), twins(session, n);
  Times our_times, twin_times;
  std::int64_t compactions = 0;
  for (int repeat = 0; repeat <= repeats; ++repeat) {
    ours.reset(omegas, ends);
    const BoundPlan model{kernel,
                          {{"x", ours.x},
                           {"v", ours.v},
                           {"t", ours.t},
                           {"omega", ours.omega},
                           {"t_end", ours.t_end},
                           {"dt", dt},
                           {"c", damping},
                           {"done", ours.done}}};
    const RunResult result = need(session.simulate(model, {.max_steps = 2000}));
    if (result.status != RunStatus::finished) die("the run did not finish");
    compactions = result.report.compactions;
    twins.reset(sorted_omegas, sorted_ends);
    const bench::Damped raw{twins.x.span().data(),
                            twins.v.span().data(),
                            twins.t.span().data(),
                            twins.omega.span().data(),
                            twins.t_end.span().data(),
                            twins.done.span().data(),
                            n};
    const auto start = std::chrono::steady_clock::now();
    bench::step_damped(raw, c.method, dt, damping, threads);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (repeat == 0) {  // warms up, and is compared
      for (std::size_t k = 0; k < order.size(); ++k) {
        const auto i = static_cast<std::int64_t>(order[k]), j = static_cast<std::int64_t>(k);
        if (ours.x[i] != twins.x[j] || ours.v[i] != twins.v[j] || ours.t[i] != twins.t[j])
          die(c.name + ": sample " + std::to_string(i) + " differs from the twin's");
      }
      continue;
    }
    our_times.add(result.report.wall_s);
    twin_times.add(took.count());
  }
  const double ratio = our_times.least() / twin_times.least();
  std::printf(
      "%-22s ours %8.2f (%8.2f) ms   twin %8.2f (%8.2f) ms   ratio %.2f of at most %.2f   %lld compactions\n",
      c.name.c_str(), our_times.least() * 1e3, our_times.median() * 1e3, twin_times.least() * 1e3,
      twin_times.median() * 1e3, ratio, c.bound, static_cast<long long>(compactions));
  return ratio <= c.bound;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t samples = 100'000;
  int repeats = 9, threads = 2;
  bool check = false;
  CLI::App app("Stepping until samples finish, next to a hand-written loop");
  app.add_option("--samples", samples)->check(CLI::Range(32, 1 << 28));
  app.add_option("--repeats", repeats)->check(CLI::Range(1, 1000));
  app.add_option("--threads", threads)->check(CLI::Range(1, 1024));
  app.add_flag("--check", check);
  CLI11_PARSE(app, argc, argv);
  samples = samples / 32 * 32;

  const Session session = need(local({threads}));
  std::printf("%lld samples, 1,000 steps, %d threads; minimum (median) of %d\n",
              static_cast<long long>(samples), threads, repeats);
  bool within = true;
  for (const Case& c :
       {Case{"6 oscillator together", Method::euler, false, 1.1},
        Case{"7 oscillator spread", Method::euler, true, 1.4},
        Case{"8 rk4 together", Method::rk4, false, 1.1}, Case{"8 rk4 spread", Method::rk4, true, 1.4}}) {
    within = run_case(session, c, samples, repeats, threads) && within;
  }
  return check && !within ? 1 : 0;
}
