// How long `build` of a large graph takes, and how that grows.
//
//   build/release/bin/bench_build [--repeats R] [--daemon ENDPOINT] [--growth]
//
// Three graphs: kernels over distinct arrays, host nodes over the columns of one matrix, kernels in place on
// one array. Minimum and median of `build()` alone; --growth also prints the exponent from 100 to 30,000
// nodes (a least-squares line through the logarithms of the minima). Each graph is launched once and its
// result checked.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "eagle/client/graph.h"
#include "eagle/client/kernel_builder.h"
#include "eagle/client/session.h"
#include "tests/bench/need.h"

namespace {

using namespace eagle;
using bench::die;

void check(const Status& status) {
  if (!status.ok()) die(status.to_string());
}
template <typename T>
T take(StatusOr<T> value) {
  check(value.status());
  return std::move(*value);
}

std::shared_ptr<const Kernel> add_one() {
  KernelBuilder k("add_one");
  const auto x = k.scalar("x");
  k.output("y", k.add(x, k.real(1.0)));
  return std::make_shared<const Kernel>(take(k.finish()));
}

// A graph that is not built, and what its last plane holds after one launch.
struct Work {
  std::unique_ptr<Graph> graph;
  std::function<double()> result;
  double expected = 0;
};

Work distinct(const Session& session, std::int64_t nodes) {
  Work work{std::make_unique<Graph>(session), {}, 1.0};
  const auto kernel = add_one();
  Array<double> last = take(session.zeros<double>({8}));
  for (std::int64_t i = 0; i < nodes; ++i) {
    const auto x = take(session.zeros<double>({8}));
    last = take(session.zeros<double>({8}));
    check(work.graph->add({kernel, {{"x", x}, {"y", last}}}));
  }
  work.result = [last] { return last[7]; };
  return work;
}

Work columns(const Session& session, std::int64_t nodes) {
  constexpr std::int64_t rows = 64;
  const auto matrix = take(session.zeros<double>({rows, nodes}));
  Work work{std::make_unique<Graph>(session), [matrix] { return matrix[matrix.size() - 1]; }, 1.0};
  for (std::int64_t i = 0; i < nodes; ++i) {
    ArrayView column = matrix;
    column.data = &matrix[i];
    column.shape = {rows};
    column.strides = {nodes * 8};
    const auto fill = [matrix, nodes, i] {
      for (std::int64_t row = 0; row < rows; ++row) matrix[row * nodes + i] = 1.0;
      return Status();
    };
    check(work.graph->add_node(opaque(fill, {{}, {{"column", column}}})));
  }
  return work;
}

Work in_place(const Session& session, std::int64_t nodes) {
  const auto x = take(session.zeros<double>({8}));
  Work work{std::make_unique<Graph>(session), [x] { return x[7]; }, static_cast<double>(nodes)};
  const auto kernel = add_one();
  for (std::int64_t i = 0; i < nodes; ++i) check(work.graph->add({kernel, {{"x", x}, {"y", x}}}));
  return work;
}

using Make = Work (*)(const Session&, std::int64_t);

// Seconds of each build, ascending.
std::vector<double> build_times(const Session& session, Make make, std::int64_t nodes, int repeats) {
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const Work work = make(session, nodes);
    const auto start = std::chrono::steady_clock::now();
    check(work.graph->build());
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    check(work.graph->launch().status());
    if (work.result() != work.expected) die("a launch gave another result");
  }
  std::ranges::sort(seconds);
  return seconds;
}

double growth(const Session& session, Make make, int repeats) {
  std::vector<double> x, y;
  for (const std::int64_t nodes : {100, 300, 1000, 3000, 10'000, 30'000}) {
    x.push_back(std::log(static_cast<double>(nodes)));
    y.push_back(std::log(build_times(session, make, nodes, repeats).front()));
  }
  double mean_x = 0, mean_y = 0, top = 0, bottom = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / static_cast<double>(x.size());
    mean_y += y[i] / static_cast<double>(y.size());
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    top += (x[i] - mean_x) * (y[i] - mean_y);
    bottom += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return top / bottom;
}

}  // namespace

int main(int argc, char** argv) {
  int repeats = 9;
  std::string endpoint;
  bool with_growth = false;
  CLI::App app("How long graphs take to build");
  app.add_option("--repeats", repeats)->check(CLI::PositiveNumber);
  app.add_option("--daemon", endpoint, "through the daemon at this endpoint");
  app.add_flag("--growth", with_growth);
  CLI11_PARSE(app, argc, argv);
  const Session session = take(endpoint.empty() ? eagle::local() : eagle::connect(endpoint));
  struct Case {
    const char* name;
    Make make;
    std::int64_t nodes;
  };
  std::printf("%d builds each                  minimum      median%s\n", repeats,
              with_growth ? "  exponent" : "");
  for (const Case& one : {Case{"3,000 on distinct arrays", distinct, 3000},
                          Case{"3,000 on columns", columns, 3000}, Case{"1,000 in place", in_place, 1000}}) {
    const std::vector<double> seconds = build_times(session, one.make, one.nodes, repeats);
    std::printf("  %-26s %7.2f ms %8.2f ms", one.name, 1e3 * seconds.front(),
                1e3 * seconds[seconds.size() / 2]);
    if (with_growth) std::printf("  %8.2f", growth(session, one.make, std::max(1, repeats / 3)));
    std::printf("\n");
    std::fflush(stdout);
  }
  return 0;
}
