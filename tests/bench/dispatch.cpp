// What it would gain to run each branch of a dispatch group in a kernel of its own.
//
//   build/release/bin/bench_dispatch [--samples N] [--repeats R]
//
// Mixed samples of three unequal branches, 200 steps on one thread. As one kernel: behind tests (switch), and
// sorted by branch within tiles (segmented). And as the limit of what a kernel a branch can reach: three
// runs, each of a kernel that has one branch alone, over the samples of that branch, which lie together from
// the start and are never sorted, moved or counted. Processor time, minimum of R. Bits are compared.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
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
using Value = kernel::KernelBuilder::Value;

struct Work {
  const char* name;
  int common;       // rounds of arithmetic before the group
  int branches[3];  // in each branch
};

Value rounds(kernel::KernelBuilder& k, Value x, int count, double by) {
  for (int i = 0; i < count; ++i) x = k.add(k.mul(x, k.real(by)), k.real(1e-3));
  return x;
}

// With all branches, or with `only` one in place of the group.
kernel::Kernel model(const Work& work, std::optional<int> only) {
  constexpr double factors[] = {0.999, 0.9, 1.001};
  kernel::KernelBuilder k("dispatching");
  const auto x = k.state("x", {}), t = k.state("t", {});
  const auto kind = k.index("kind");
  k.terminated("done");
  const auto before = rounds(k, x, work.common, 0.99);
  Value after = before;
  if (only) {
    after = rounds(k, before, work.branches[*only], factors[*only]);
  } else {
    k.begin_switch(kind, kernel::Dispatch{"kind", kernel::DispatchPolicy::automatic});
    k.next_case({rounds(k, before, work.branches[0], factors[0])});
    k.next_case({rounds(k, before, work.branches[1], factors[1])});
    after = k.end_switch({rounds(k, before, work.branches[2], factors[2])})[0];
  }
  k.commit("x", after);
  const auto later = k.add(t, k.real(1));
  k.commit("t", later);
  k.commit("done", k.ge(later, k.real(200)));
  return need(k.finish());
}

struct Samples {
  std::vector<double> x;
  std::vector<std::int64_t> kind;
};

double step_all(Engine& engine, const kernel::Kernel& kernel, Samples& samples, v1::DispatchPolicy policy) {
  std::vector<double> t(samples.x.size());
  std::vector<std::uint8_t> done(samples.x.size());
  eagle::testing::RunScene scene;
  scene.message.set_max_steps(1000);
  eagle::testing::fill(*scene.message.add_model(), scene.kernel(kernel),
                       {{"x", scene.array(samples.x)},
                        {"t", scene.array(t)},
                        {"kind", scene.array(samples.kind)},
                        {"done", scene.array(done)}});
  if (policy != v1::DISPATCH_POLICY_UNSPECIFIED) scene.message.add_dispatch()->set_policy(policy);
  const auto simulation = need(engine.simulate(scene.message, scene.memory, nullptr));
  const double start = processor_s();
  while (simulation->advance() != step::Simulation::Next::done) {
  }
  return processor_s() - start;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t samples = 50'000;
  int repeats = 5;
  CLI::App app("What a kernel a branch would gain over sorted samples");
  app.add_option("--samples", samples)->check(CLI::Range(3, 1 << 28));
  app.add_option("--repeats", repeats)->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  Engine::Options options;
  options.threads = 1;
  options.private_planes = graph::PrivateKernelPlanes::allowed;
  const auto engine = need(Engine::create(std::move(options)));

  std::mt19937_64 random(20'261'130);
  Samples mixed;
  for (std::size_t i = 0; i < samples; ++i) {
    mixed.x.push_back(static_cast<double>(random() % 1000) / 500);
    mixed.kind.push_back(static_cast<std::int64_t>(random() % 3));
  }
  Samples grouped;
  for (std::int64_t branch = 0; branch < 3; ++branch) {
    for (std::size_t i = 0; i < samples; ++i) {
      if (mixed.kind[i] != branch) continue;
      grouped.x.push_back(mixed.x[i]);
      grouped.kind.push_back(branch);
    }
  }
  std::printf("%zu samples, 200 steps, one thread; processor milliseconds, minimum of %d\n", samples,
              repeats);
  std::printf("%-26s%10s%10s%10s%10s%15s%17s\n", "rounds: common, branches", "switch", "sorted", "grouped",
              "kernels", "switch/sorted", "grouped/kernels");
  for (const Work& work : {Work{"2, 2 2 40", 2, {2, 2, 40}}, Work{"2, 2 20 200", 2, {2, 20, 200}},
                           Work{"40, 2 2 40", 40, {2, 2, 40}}, Work{"20, 20 20 20", 20, {20, 20, 20}}}) {
    constexpr double never = std::numeric_limits<double>::infinity();
    double times[4] = {never, never, never, never};
    for (int repeat = 0; repeat <= repeats; ++repeat) {
      Samples fused = mixed, sorted = mixed, together = grouped;
      const double first = repeat == 0 ? never : 0;  // warms up
      times[0] = std::min(times[0], first + step_all(*engine, model(work, {}), fused, v1::DISPATCH_SWITCH));
      times[1] =
          std::min(times[1], first + step_all(*engine, model(work, {}), sorted, v1::DISPATCH_SEGMENTED));
      times[2] =
          std::min(times[2], first + step_all(*engine, model(work, {}), together, v1::DISPATCH_SWITCH));
      if (fused.x != sorted.x) die("sorting changes bits");
      double all = first;
      std::size_t at = 0;
      for (int branch = 0; branch < 3; ++branch) {
        Samples mine;
        for (std::size_t i = 0; i < samples; ++i) {
          if (grouped.kind[i] != branch) continue;
          mine.x.push_back(grouped.x[i]);
          mine.kind.push_back(branch);
        }
        all += step_all(*engine, model(work, branch), mine, v1::DISPATCH_POLICY_UNSPECIFIED);
        for (const double x : mine.x) {
          if (x != together.x[at++]) die("a kernel of one branch gives other bits");
        }
      }
      times[3] = std::min(times[3], all);
    }
    std::printf("%-26s%10.2f%10.2f%10.2f%10.2f%15.2f%17.2f\n", work.name, times[0] * 1e3, times[1] * 1e3,
                times[2] * 1e3, times[3] * 1e3, times[0] / times[1], times[2] / times[3]);
  }
  return 0;
}
