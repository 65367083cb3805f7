// Chains of sixteen y = a x + b, next to hand-written loops.
//
//   build/release/bin/bench_chain [--repeats R] [--threads T] [--daemon ENDPOINT] [--only LINE] [--check]
//
// Lines 2 (1,024 samples), 3 (100,000), 4 (eight branches of 1,024) and 11 (one node over 10,000,000) of
// docs/measurements. "stored": every plane is an array of ours; "scratch": those between are scratch planes.
// The twin of a stored chain is the faster of two loops. A launch is one of `launch(n)`. Forms run in turn;
// minimum and median are printed, and the ratio of minima. Answers are compared bit for bit. --check: fails
// where a ratio is over its bound.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "eagle/client/graph.h"
#include "eagle/client/kernel_builder.h"
#include "eagle/client/session.h"
#include "tests/bench/chain_twin.h"
#include "tests/bench/need.h"

namespace {

using namespace eagle;
using bench::die;
using bench::Link;
using bench::need;

constexpr std::size_t length = 16;

std::shared_ptr<const Kernel> affine() {
  KernelBuilder k("affine");
  const auto a = k.param("a"), b = k.param("b"), x = k.scalar("x");
  k.output("y", k.add(k.mul(a, x), b));
  return std::make_shared<const Kernel>(need(k.finish()));
}

std::vector<Link> links() {
  std::vector<Link> made;
  for (std::size_t i = 0; i < length; ++i) {
    const auto d = static_cast<double>(i);
    made.push_back({1.0 + d / 64, 0.5 - d / 32});
  }
  return made;
}

struct Setup {
  const Session& session;
  int repeats;
  int threads;
  bool check;
};

struct Times {
  std::vector<double> seconds;
  [[nodiscard]] double least() const { return *std::ranges::min_element(seconds); }
  [[nodiscard]] double median() const {
    std::vector<double> sorted = seconds;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Runs ours in turn with its twins, each `count` times at once; whether the ratio to the fastest twin stays
// within the bound.
bool compare(const Setup& setup, const std::string& name, double bound, std::int64_t count,
             const std::function<void(std::int64_t)>& ours, const std::vector<std::function<void()>>& twins) {
  Times own;
  std::vector<Times> others(twins.size());
  for (int repeat = 0; repeat <= setup.repeats; ++repeat) {
    const double mine = seconds_of([&] { ours(count); }) / static_cast<double>(count);
    if (repeat > 0) own.seconds.push_back(mine);
    for (std::size_t t = 0; t < twins.size(); ++t) {
      const double took = seconds_of([&] {
        for (std::int64_t i = 0; i < count; ++i) twins[t]();
      });
      if (repeat > 0) others[t].seconds.push_back(took / static_cast<double>(count));
    }
  }
  const Times& twin = *std::ranges::min_element(others, {}, &Times::least);
  const double ratio = own.least() / twin.least();
  std::printf("%-28s ours %9.2f (%9.2f) us   twin %9.2f (%9.2f) us   ratio %5.2f of at most %.2f\n",
              name.c_str(), own.least() * 1e6, own.median() * 1e6, twin.least() * 1e6, twin.median() * 1e6,
              ratio, bound);
  std::fflush(stdout);
  return ratio <= bound;
}

void compare_bits(const std::string& name, const Array<double>& ours, const Array<double>& twin) {
  if (std::memcmp(ours.span().data(), twin.span().data(), ours.span().size_bytes()) != 0)
    die(name + ": the twin has other bits");
}

// The planes of one chain.
struct Planes {
  std::vector<Array<double>> arrays;
  std::vector<double*> raw;

  Planes(const Session& session, std::int64_t samples) {
    for (std::size_t i = 0; i <= length; ++i) {
      arrays.push_back(need(session.zeros<double>({samples})));
      raw.push_back(arrays.back().span().data());
    }
    for (std::int64_t i = 0; i < samples; ++i) raw[0][i] = 1.0 + static_cast<double>(i % 1000) / 1000;
  }
};

bool stored_chain(const Setup& setup, const std::string& name, std::int64_t samples, std::int64_t count,
                  double bound) {
  const std::vector<Link> all = links();
  const Planes ours(setup.session, samples), twin(setup.session, samples);
  Graph g(setup.session);
  const auto kernel = affine();
  for (std::size_t i = 0; i < length; ++i)
    need(g.add(
        {kernel, {{"x", ours.arrays[i]}, {"y", ours.arrays[i + 1]}, {"a", all[i].a}, {"b", all[i].b}}}));
  need(g.build());
  const bool within = compare(setup, name, bound, count, [&](std::int64_t n) { need(g.launch(n).status()); },
                              {[&] { bench::chain_blocked(twin.raw, all, samples, setup.threads); },
                               [&] { bench::chain_stored(twin.raw, all, samples, setup.threads); }});
  for (std::size_t i = 1; i <= length; ++i) compare_bits(name, ours.arrays[i], twin.arrays[i]);
  return within;
}

bool scratch_chain(const Setup& setup, const std::string& name, std::int64_t samples, std::int64_t count,
                   double bound) {
  const std::vector<Link> all = links();
  const Planes ours(setup.session, samples), twin(setup.session, samples);
  Graph g(setup.session);
  const auto kernel = affine();
  ArrayView from = ours.arrays.front();
  for (std::size_t i = 0; i < length; ++i) {
    const bool last = i + 1 == length;
    ArrayView to = last ? ArrayView(ours.arrays.back()) : need(g.scratch({samples}, DType::f64));
    need(g.add({kernel, {{"x", from}, {"y", to}, {"a", all[i].a}, {"b", all[i].b}}}));
    from = to;
  }
  need(g.build());
  const bool within = compare(
      setup, name, bound, count, [&](std::int64_t n) { need(g.launch(n).status()); },
      {[&] { bench::chain_scratch(twin.raw.front(), twin.raw.back(), all, samples, setup.threads); }});
  compare_bits(name, ours.arrays.back(), twin.arrays.back());
  return within;
}

bool branches(const Setup& setup, const std::string& name, double bound) {
  constexpr std::size_t wide = 8;
  constexpr std::int64_t samples = 1024;
  const std::vector<Link> all = links();
  std::vector<Planes> ours, twin;
  Graph g(setup.session);
  const auto kernel = affine();
  std::vector<BranchSpec> specs;
  for (std::size_t c = 0; c < wide; ++c) {
    ours.emplace_back(setup.session, samples);
    twin.emplace_back(setup.session, samples);
    BranchSpec& spec = specs.emplace_back();
    for (std::size_t i = 0; i < length; ++i) {
      spec.nodes.emplace_back(
          "",
          BoundPlan{
              kernel,
              {{"x", ours[c].arrays[i]}, {"y", ours[c].arrays[i + 1]}, {"a", all[i].a}, {"b", all[i].b}}});
    }
  }
  need(g.add_group(std::move(specs)));
  need(g.build());
  std::vector<std::span<double* const>> raw;
  for (const Planes& planes : twin) raw.emplace_back(planes.raw);
  const bool within = compare(setup, name, bound, 100, [&](std::int64_t n) { need(g.launch(n).status()); },
                              {[&] { bench::branches(raw, all, samples, setup.threads); }});
  for (std::size_t c = 0; c < wide; ++c) compare_bits(name, ours[c].arrays.back(), twin[c].arrays.back());
  return within;
}

bool streamed(const Setup& setup, const std::string& name, double bound) {
  constexpr std::int64_t samples = 10'000'000;
  const auto x = need(setup.session.full<double>({samples}, 1.25));
  const auto ours = need(setup.session.zeros<double>({samples}));
  const auto twin = need(setup.session.zeros<double>({samples}));
  Graph g(setup.session);
  need(g.add({affine(), {{"x", x}, {"y", ours}, {"a", 3.0}, {"b", 0.5}}}));
  need(g.build());
  const bool within = compare(
      setup, name, bound, 1, [&](std::int64_t n) { need(g.launch(n).status()); }, {[&] {
        bench::affine_streamed(x.span().data(), twin.span().data(), {3.0, 0.5}, samples, setup.threads);
      }});
  compare_bits(name, ours, twin);
  return within;
}

}  // namespace

int main(int argc, char** argv) {
  int repeats = 9, threads = 2, only = 0;
  std::string endpoint;
  bool check = false;
  CLI::App app("Chains of nodes next to hand-written loops");
  app.add_option("--repeats", repeats)->check(CLI::Range(1, 1000));
  app.add_option("--threads", threads)->check(CLI::Range(1, 1024));
  app.add_option("--only", only, "one line of the table");
  app.add_option("--daemon", endpoint, "through the daemon at this endpoint, whose team has as many threads");
  app.add_flag("--check", check);
  CLI11_PARSE(app, argc, argv);

  const Session session = need(endpoint.empty() ? local({threads}) : connect(endpoint));
  const Setup setup{session, repeats, threads, check};
  std::printf("%d threads; minimum (median) of %d\n", threads, repeats);
  const auto wanted = [&](int line) { return only == 0 || only == line; };
  bool within = true;
  const auto add = [&](bool held) { within = held && within; };
  if (wanted(2)) {
    add(stored_chain(setup, "2 chain, 1,024, stored", 1024, 100, 1.0));
    add(scratch_chain(setup, "2 chain, 1,024, scratch", 1024, 100, 1.5));
  }
  if (wanted(3)) {
    add(stored_chain(setup, "3 chain, 100,000, stored", 100'000, 10, 1.0));
    add(scratch_chain(setup, "3 chain, 100,000, scratch", 100'000, 10, 1.5));
  }
  if (wanted(4)) add(branches(setup, "4 branches, 8 x 1,024", 1.0));
  if (wanted(11)) add(streamed(setup, "11 one node, 10,000,000", 1.1));
  return check && !within ? 1 : 0;
}
