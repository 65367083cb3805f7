// What a GPU costs through our own side of the driver: launches, nodes, copies, reductions, runs. Prints the
// GPU's name and rows as the other programs of measurement do. Meant for hardware; with tests/fake_cuda it
// runs, and its times mean nothing.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/graph/testing.h"
#include "engine/kernel/builder.h"
#include "engine/run/cuda/device_graph.h"
#include "tests/bench/need.h"
#include "tests/bench/rows.h"

namespace eagle::bench {
namespace {

using graph::testing::Description;
using plane::View;
using run::cuda::DeviceGraph;

struct Asked {
  std::int64_t samples = std::int64_t{1} << 25;
  int ordinal = 0;
  int repeats = 7;
  bool json = false;
};

class Program {
public:
  Program(run::cuda::DeviceModules& modules, const Asked& asked)
      : modules_(modules), samples_(asked.samples), repeats_(asked.repeats) {}

  std::vector<MeasuredRow> rows() {
    return {launches(),
            nodes(),
            bytes("copy of contiguous doubles", copied(false), 16),
            bytes("copy of doubles, transposed", copied(true), 16),
            bytes("sum of doubles", reduced(false), 8),
            bytes("compensated sum of doubles", reduced(true), 8)};
  }

private:
  // Seconds a unit, of `units` units that `work` does at a time.
  [[nodiscard]] std::vector<double> times(double units, const std::function<void()>& work) const {
    std::vector<double> found;
    work();
    for (int round = 0; round < repeats_; ++round) {
      const auto begun = std::chrono::steady_clock::now();
      work();
      found.push_back(seconds_since(begun) / units);
    }
    return found;
  }
  std::unique_ptr<DeviceGraph> build(const Description& d) {
    return need(DeviceGraph::build(modules_, need(d.try_read())));
  }
  static void run(DeviceGraph& graph, std::int64_t count) {
    need(graph.launch(count));
    (void)need(graph.wait());
  }

  // One small kernel, launched and waited for.
  MeasuredRow launches() {
    Description d;
    add(d, 1);
    const auto graph = build(d);
    return {"launch of one node and wait", "s", {{"eagle", "ours", times(100, [&] {
                                                    for (int i = 0; i < 100; ++i) run(*graph, 1);
                                                  })}}};
  }

  // Of a chain, and of nodes that have nothing to do with each other; a hundred replays in a row.
  MeasuredRow nodes() {
    MeasuredRow row{"a node of a replay, 100 replays in a row", "s", {}};
    for (const int count : {1, 16, 256}) {
      Description d;
      add(d, count);
      const auto graph = build(d);
      row.forms.push_back(
          {"chain of " + std::to_string(count), "ours", times(100.0 * count, [&] { run(*graph, 100); })});
    }
    return row;
  }

  static void add(Description& d, int count) {
    const View x = d.array({256}), y = d.array({256});
    const std::uint32_t accumulate = d.accumulate_kernel();
    for (int i = 0; i < count; ++i)
      d.add(graph::testing::launch("n" + std::to_string(i), accumulate, {{"x", x}, {"y", y}}));
  }

  Description copied(bool transposed) const {
    Description d;
    const std::int64_t columns = 64, lines = samples_ / columns;
    const View x = d.array({lines, columns});
    const View y =
        transposed ? plane::testing::transposed(d.array({columns, lines})) : d.array({lines, columns});
    return d.add(graph::testing::copy("c", x, y));
  }
  Description reduced(bool compensated) const {
    Description d;
    const View x = d.array({samples_}), out = d.array({1});
    return d.add(graph::testing::reduce("r", x, out, v1::REDUCE_SUM, compensated));
  }

  // Gigabytes a second.
  MeasuredRow bytes(const std::string& title, const Description& d, std::int64_t bytes_a_sample) {
    const auto graph = build(d);
    MeasuredRow row{title + ", " + std::to_string(samples_) + " of them", "GB/s", {{"eagle", "ours", {}}}};
    for (const double seconds : times(1, [&] { run(*graph, 1); }))
      row.forms[0].values.push_back(1e-9 * static_cast<double>(bytes_a_sample * samples_) / seconds);
    return row;
  }

  run::cuda::DeviceModules& modules_;
  const std::int64_t samples_;
  const int repeats_;
};

int run(const Asked& asked) {
  codegen::Compiler compiler;
  const auto driver = need(run::cuda::Driver::open());
  const auto device = need(run::cuda::Device::open(driver, asked.ordinal));
  std::fprintf(stderr, "%s, %s, CUDA %s of %s\n", device->info().name.c_str(), device->info().uuid.c_str(),
               run::cuda::version_text(driver->version()).c_str(), driver->library().c_str());
  run::cuda::DeviceModules modules(device, compiler);
  const std::vector<MeasuredRow> rows = Program(modules, asked).rows();
  asked.json ? print_json(rows) : print_text(rows);
  return 0;
}

}  // namespace
}  // namespace eagle::bench

int main(int count, char** words) {
  CLI::App app("What a GPU costs through the engine");
  eagle::bench::Asked asked;
  app.add_option("--samples", asked.samples, "Of copies and reductions")->check(CLI::Range(64, 1 << 30));
  app.add_option("--ordinal", asked.ordinal, "Of the GPU")->check(CLI::Range(0, 63));
  app.add_option("--repeats", asked.repeats, "Of each row")->check(CLI::Range(1, 1000));
  app.add_flag("--json", asked.json, "For programs");
  CLI11_PARSE(app, count, words);
  return eagle::bench::run(asked);
}
