// What packing live samples together gains, and what it costs where it gains nothing.
//
//   build/release/bin/bench_packing [--samples N] [--repeats R]
//
// Runs of about 1,000 steps on one thread, with packing and without, in turn: processor time, the minimum of
// R. A ratio over 1 is a loss. Results are compared bit for bit.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/run/testing.h"
#include "tests/bench/need.h"

namespace {

using namespace eagle;
using bench::die;
using bench::need;
using bench::processor_s;

// `states` oscillators a sample, each updated `times` a step: much state and little work, or the other way.
kernel::Kernel model(int states, int times) {
  kernel::KernelBuilder k("packing");
  std::vector<kernel::KernelBuilder::Value> x, v;
  for (int s = 0; s < states; ++s) {
    x.push_back(k.state("x" + std::to_string(s), {}));
    v.push_back(k.state("v" + std::to_string(s), {}));
  }
  const auto t = k.state("t", {});
  const auto end = k.scalar("end");
  k.terminated("done");
  const auto dt = k.real(1e-3);
  for (int s = 0; s < states; ++s) {
    auto at = x[static_cast<std::size_t>(s)], speed = v[static_cast<std::size_t>(s)];
    for (int i = 0; i < times; ++i) {
      const auto next = k.add(at, k.mul(dt, speed));
      speed = k.sub(speed, k.mul(dt, at));
      at = next;
    }
    k.commit("x" + std::to_string(s), at);
    k.commit("v" + std::to_string(s), speed);
  }
  const auto later = k.add(t, k.real(1));
  k.commit("t", later);
  k.commit("done", k.ge(later, end));
  return need(k.finish());
}

struct Work {
  std::string name;
  int states;
  int times;
};
struct Ends {
  std::string name;
  std::function<double(std::int64_t sample, std::int64_t samples, double random)> step;
};

struct Outcome {
  double took_s = 0;
  std::int64_t compactions = 0;
  std::vector<std::vector<double>> planes;
};

Outcome step_all(Engine& engine, const kernel::Kernel& kernel, int states, const std::vector<double>& ends) {
  Outcome outcome;
  std::vector<std::vector<double>>& planes = outcome.planes;
  planes.assign(static_cast<std::size_t>(2 * states + 1), std::vector<double>(ends.size(), 0.5));
  planes.back().assign(ends.size(), 0.0);
  std::vector<double> end = ends;
  std::vector<std::uint8_t> done(ends.size());
  eagle::testing::RunScene scene;
  scene.message.set_max_steps(100'000);
  v1::KernelLaunch& launch = *scene.message.add_model();
  launch.set_kernel(scene.kernel(kernel));
  const auto bind = [&](const std::string& name, const eagle::testing::Array& array) {
    v1::Binding& binding = *launch.add_bindings();
    binding.set_argument(name);
    eagle::testing::set_view(*binding.mutable_view(), array);
  };
  for (int s = 0; s < states; ++s) {
    bind("x" + std::to_string(s), scene.array(planes[static_cast<std::size_t>(2 * s)]));
    bind("v" + std::to_string(s), scene.array(planes[static_cast<std::size_t>(2 * s + 1)]));
  }
  bind("t", scene.array(planes.back()));
  bind("end", scene.array(end));
  bind("done", scene.array(done));
  const auto simulation = need(engine.simulate(scene.message, scene.memory, nullptr));
  const double start = processor_s();
  while (simulation->advance() != step::Simulation::Next::done) {
  }
  outcome.took_s = processor_s() - start;
  outcome.compactions = simulation->result().report.compactions;
  if (simulation->result().status != step::RunStatus::finished) die("a run did not finish");
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t samples = 20'000;
  int repeats = 7;
  CLI::App app("What packing live samples together gains and costs");
  app.add_option("--samples", samples)->check(CLI::Range(1, 1 << 28));
  app.add_option("--repeats", repeats)->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);

  Engine::Options options;
  options.threads = 1;
  options.private_planes = graph::PrivateKernelPlanes::allowed;
  Engine::Options without = options;
  without.packs_samples = false;
  const auto packing = need(Engine::create(std::move(options)));
  const auto plain = need(Engine::create(std::move(without)));

  const Work works[] = {{"light", 1, 1}, {"heavy", 1, 24}, {"wide", 12, 1}};
  const Ends ends[] = {
      {"together", [](auto, auto, double) { return 1000.0; }},
      {"sorted",
       [](auto i, auto n, double) { return 1 + 1000.0 * static_cast<double>(i) / static_cast<double>(n); }},
      {"spread", [](auto, auto, double r) { return 1 + 1000.0 * r; }},
      {"exponential", [](auto, auto, double r) { return 1 - 200.0 * std::log(1 - r); }},
      // In each vector one sample lives on.
      {"one of 64 lives on", [](auto i, auto, double) { return i % 64 == 7 ? 1000.0 : 60.0; }},
      // Half end, it looks as if packing will pay, and the rest end just behind.
      {"the rest ends soon", [](auto, auto, double r) { return r < 0.5 ? 60.0 : 132.0; }},
      // A few end in each window, in all vectors: an eighth at a time.
      {"eighths", [](auto, auto, double r) { return 64.0 * (1 + std::floor(16 * r)); }},
      {"rare early ends", [](auto, auto, double r) { return r < 0.05 ? 1 + 20'000.0 * r : 1000.0; }},
      {"waves",
       [](auto, auto, double r) { return 100.0 * (1 + std::floor(3 * r)) + 30 * std::fmod(100 * r, 1.0); }},
  };
  std::printf("%lld samples, one thread; processor milliseconds, minimum of %d\n",
              static_cast<long long>(samples), repeats);
  std::printf("%-8s%-22s%12s%12s%8s%14s\n", "work", "ends", "without", "with", "ratio", "compactions");
  for (const Work& work : works) {
    const kernel::Kernel kernel = model(work.states, work.times);
    for (const Ends& end : ends) {
      std::mt19937_64 random(20'261'130);
      std::uniform_real_distribution<double> unit(0.0, 1.0);
      std::vector<double> steps;
      for (std::int64_t i = 0; i < samples; ++i) steps.push_back(end.step(i, samples, unit(random)));
      double with_s = std::numeric_limits<double>::infinity(), without_s = with_s;
      std::int64_t compactions = 0;
      for (int repeat = 0; repeat <= repeats; ++repeat) {
        const Outcome ours = step_all(*packing, kernel, work.states, steps);
        const Outcome other = step_all(*plain, kernel, work.states, steps);
        if (ours.planes != other.planes) die("packing changes bits");
        compactions = ours.compactions;
        if (repeat == 0) continue;
        with_s = std::min(with_s, ours.took_s);
        without_s = std::min(without_s, other.took_s);
      }
      std::printf("%-8s%-22s%12.2f%12.2f%8.3f%14lld\n", work.name.c_str(), end.name.c_str(), without_s * 1e3,
                  with_s * 1e3, with_s / without_s, static_cast<long long>(compactions));
    }
  }
  return 0;
}
