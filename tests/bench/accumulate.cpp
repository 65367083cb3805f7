// Sums and scatter-adds in their fixed orders, next to hand-written C++ in the same order.
//
//   build/release/bin/bench_accumulate [--repeats R] [--threads T] [--json]
//
// All forms of a case run in turn, R times; minimum and median are printed, and the ratio of minima to the
// case's first form. Every form's answer is compared bit for bit. Sums of 1e3 are measured many at a time,
// without the executor around them; with --json they are all that is measured (tests/bench/run.py).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "eagle/client/graph.h"
#include "eagle/client/kernel_builder.h"
#include "eagle/client/session.h"
#include "engine/kernel/float_environment.h"
#include "engine/run/reduction/reduction.h"
#include "tests/bench/accumulate_twin.h"
#include "tests/bench/need.h"
#include "tests/bench/rows.h"

namespace {

using namespace eagle;
using bench::die;
using bench::need;

struct Form {
  std::string name;
  std::function<void()> run;
  std::function<void()> reset = [] {};
  std::function<std::vector<double>()> answer;
  bool comparable = true;  // to the first form's answer
  std::vector<double> seconds = {};
};

bench::MeasuredRow compare(const std::string& title, std::vector<Form> forms, int repeats, int times = 1) {
  std::vector<double> expected;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (Form& form : forms) {
      form.reset();
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < times; ++i) form.run();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      form.seconds.push_back(took.count() / times);
      const std::vector<double> found = form.answer();
      if (expected.empty()) expected = found;
      if (form.comparable && std::memcmp(found.data(), expected.data(), 8 * expected.size()) != 0)
        die(title + ": " + form.name + " has other bits");
    }
  }
  bench::MeasuredRow row{title, "s", {}};
  for (const Form& form : forms)
    row.forms.push_back({form.name, &form == &forms.front() ? "limit" : "ours", form.seconds});
  return row;
}

std::vector<double> numbers(std::int64_t n) {
  std::mt19937_64 random(20261129);
  std::vector<double> x(static_cast<std::size_t>(n));
  for (double& value : x) value = static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
  return x;
}

// The kernel of a reduction alone, as it runs inside a graph.
Form reducer_form(const std::string& name, const Array<double>& x, double& out, bool compensated) {
  const run::Reducer& reducer = run::reducer_for({kernel::ReduceOp::sum, kernel::Scalar::f64, compensated});
  return {.name = name,
          .run =
              [&reducer, x, &out] {
                run::Partial partial;
                reducer.append(partial, reinterpret_cast<const std::byte*>(x.span().data()), 0, x.size());
                reducer.finish(partial, reinterpret_cast<std::byte*>(&out));
              },
          .answer = [&out] { return std::vector<double>{out}; },
          .comparable = !compensated};
}

Form graph_form(const std::string& name, const Session& session, const Array<double>& x, bool compensated) {
  const auto out = need(session.zeros<double>({1}));
  const auto g = std::make_shared<Graph>(session);
  need(g->add_node(reduce(x, out, {.op = ReduceOp::sum, .compensated = compensated})));
  need(g->build());
  return {.name = name,
          .run = [g] { need(g->launch()); },
          .answer = [out] { return std::vector<double>{out[0]}; },
          .comparable = !compensated};
}

bench::MeasuredRow sum_of(const Session& session, std::int64_t n, int threads, int repeats) {
  const auto x = need(session.copy<double>(numbers(n)));
  const double* data = x.span().data();
  double twin = 0, plain = 0, compensated = 0;
  const bool small = n == 1'000;
  std::vector<Form> forms;
  forms.push_back({.name = "C++ twin",
                   .run = [&, n, data] { twin = bench::fixed_order_sum(data, n, small ? 1 : threads); },
                   .answer = [&] { return std::vector<double>{twin}; }});
  if (small) {
    forms.push_back(reducer_form("sum, executor aside", x, plain, false));
    forms.push_back(reducer_form("compensated, executor aside", x, compensated, true));
  }
  forms.push_back(graph_form("sum in a graph", session, x, false));
  forms.push_back(graph_form("compensated in a graph", session, x, true));
  return compare("sum of " + std::to_string(n) + " float64", std::move(forms), repeats, small ? 2'000 : 1);
}

std::shared_ptr<const Kernel> scatter() {
  KernelBuilder b("scatter");
  const auto x = b.scalar("x");
  const auto key = b.index("key");
  b.accumulator("h", {});
  b.accum_add("h", x, {key});
  return std::make_shared<const Kernel>(need(b.finish()));
}

void scatters(const Session& session, int threads, int repeats) {
  constexpr std::int64_t n = 10'000'000;
  const auto x = need(session.copy<double>(numbers(n)));
  const auto key = need(session.zeros<std::int64_t>({n}));
  const auto kernel = scatter();
  std::mt19937_64 random(7);
  for (const char* kind : {"uniform", "sorted", "one-hot"}) {
    for (const std::int64_t cells : {1'000, 1'000'000}) {
      const auto bound = static_cast<std::uint64_t>(cells);
      for (std::int64_t i = 0; i < n; ++i) key[i] = static_cast<std::int64_t>(random() % bound);
      if (std::string(kind) == "sorted") std::ranges::sort(key.span());
      if (std::string(kind) == "one-hot") std::ranges::fill(key.span(), cells / 2);
      const auto h = need(session.zeros<double>({cells}));
      const auto g = std::make_shared<Graph>(session);
      need(g->add({kernel, {{"x", x}, {"key", key}, {"h", h}}}));
      need(g->build());
      const double* values = x.span().data();
      const std::int64_t* keys = key.span().data();
      const auto reset = [h] { std::ranges::fill(h.span(), 0.0); };
      const auto answer = [h] { return std::vector<double>(h.span().begin(), h.span().end()); };
      std::vector<Form> forms;
      forms.push_back({.name = "serial C++ loop",
                       .run = [=] { bench::serial_scatter(values, keys, n, h.span().data()); },
                       .reset = reset,
                       .answer = answer});
      forms.push_back({.name = "C++ twin, tiled owners",
                       .run = [=] { bench::tiled_scatter(values, keys, n, h.span().data(), cells, threads); },
                       .reset = reset,
                       .answer = answer});
      forms.push_back(
          {.name = "Accum in a graph", .run = [g] { need(g->launch()); }, .reset = reset, .answer = answer});
      bench::print_text({compare(std::string(kind) + " keys, 1e7 into " + std::to_string(cells),
                                 std::move(forms), repeats)});
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  int repeats = 9, threads = 2;
  bool json = false;
  CLI::App app("Sums and scatter-adds next to hand-written C++");
  app.add_option("--repeats", repeats)->check(CLI::PositiveNumber);
  app.add_option("--threads", threads)->check(CLI::PositiveNumber);
  app.add_flag("--json", json);
  CLI11_PARSE(app, argc, argv);
  const kernel::FloatEnvironment environment;
  const Session session = need(local({.threads = threads}));
  if (json) {
    bench::print_json({sum_of(session, 1'000, threads, repeats)});
    return 0;
  }
  std::printf("%d threads, %d repeats\n", threads, repeats);
  for (const std::int64_t n : {1'000, 1'000'000, 10'000'000})
    bench::print_text({sum_of(session, n, threads, repeats)});
  scatters(session, threads, repeats);
  return 0;
}
