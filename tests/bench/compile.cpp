// How long a kernel takes from description to code: the oscillator's step and the J2 two-body step (RK4).
//
//   build/release/bin/bench_compile [--repeats R]
//
// "first" starts the compile helper; "warm" is what a new kernel costs after that, each with constants of its
// own so that no cache helps; "known" is the cache in memory. Minimum and median.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/codegen/compiler.h"
#include "engine/kernel/algebra.h"
#include "engine/kernel/builder.h"
#include "tests/bench/need.h"

namespace {

using namespace eagle;
using bench::die;
using kernel::KernelBuilder;
using kernel::Type;
using Value = KernelBuilder::Value;

kernel::Kernel finished(KernelBuilder& b) {
  StatusOr<kernel::Kernel> kernel = b.finish();
  if (!kernel.ok()) die(kernel.status().to_string());
  return *std::move(kernel);
}

// `own` makes the kernel's hash its own.
kernel::Kernel oscillator(double own) {
  KernelBuilder b("oscillator");
  const Value x = b.state("x", {}), v = b.state("v", {}), t = b.state("t", {});
  const Value omega = b.scalar("omega");
  const Value dt = b.param("dt"), t_end = b.param("t_end");
  b.terminated("done");
  const Value later = b.add(t, dt);
  b.commit("x", b.add(x, b.mul(dt, v)));
  b.commit("v", b.sub(v, b.mul(b.mul(b.mul(dt, omega), omega), x)));
  b.commit("t", later);
  b.commit("done", b.ge(later, b.add(t_end, b.real(own))));
  return finished(b);
}

// Acceleration of a satellite under gravity with the J2 term of an oblate body: mu = 1, radius `radius`.
Value acceleration(KernelBuilder& b, Value r, Value j2, double radius) {
  const Value squared = kernel::algebra::dot(b, r, r);
  const Value distance = b.op(kernel::Opcode::sqrt, {squared});
  const Value cubed = b.mul(squared, distance);
  const Value z = b.extract(r, 2);
  const Value ratio = b.div(b.mul(z, z), squared);
  const Value factor = b.div(b.mul(b.mul(b.real(1.5 * radius * radius), j2), b.real(1.0)), squared);
  const Value in_plane = b.sub(b.mul(b.real(5.0), ratio), b.real(1.0));
  const Value along_z = b.sub(b.mul(b.real(5.0), ratio), b.real(3.0));
  std::vector<Value> components;
  for (std::uint32_t c = 0; c < 3; ++c) {
    const Value bracket = b.sub(b.mul(factor, c == 2 ? along_z : in_plane), b.real(1.0));
    components.push_back(b.mul(b.div(b.extract(r, c), cubed), bracket));
  }
  return b.compose(components, r.type);
}

kernel::Kernel j2_step(double own) {
  KernelBuilder b("j2");
  Type vector;
  vector.rank = 1;
  vector.extents = {3, 1};
  const Value r = b.state("r", vector), v = b.state("v", vector);
  const Value dt = b.param("dt"), j2 = b.param("j2");
  const double radius = 0.9 + own;
  const auto scaled = [&](Value factor, Value x) { return kernel::algebra::scale(b, factor, x); };
  const Value half = b.mul(b.real(0.5), dt);
  const Value k1r = v, k1v = acceleration(b, r, j2, radius);
  const Value k2r = b.add(v, scaled(half, k1v)),
              k2v = acceleration(b, b.add(r, scaled(half, k1r)), j2, radius);
  const Value k3r = b.add(v, scaled(half, k2v)),
              k3v = acceleration(b, b.add(r, scaled(half, k2r)), j2, radius);
  const Value k4r = b.add(v, scaled(dt, k3v)), k4v = acceleration(b, b.add(r, scaled(dt, k3r)), j2, radius);
  const auto step = [&](Value from, Value a, Value middle, Value third, Value last) {
    const Value twice = scaled(b.real(2.0), b.add(middle, third));
    return b.add(from, scaled(b.div(dt, b.real(6.0)), b.add(b.add(a, twice), last)));
  };
  b.commit("r", step(r, k1r, k2r, k3r, k4r));
  b.commit("v", step(v, k1v, k2v, k3v, k4v));
  return finished(b);
}

double seconds_to_compile(codegen::Compiler& compiler, const kernel::Kernel& kernel) {
  const auto start = std::chrono::steady_clock::now();
  const auto compiled = compiler.compile(kernel, {});
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!compiled.ok()) die(compiled.status().to_string());
  return took;
}

void print(const char* what, std::vector<double> seconds) {
  std::ranges::sort(seconds);
  std::printf("  %-8s %9.3f ms %9.3f ms\n", what, 1e3 * seconds.front(), 1e3 * seconds[seconds.size() / 2]);
}

void measure(const char* name, const std::function<kernel::Kernel(double)>& make, int repeats) {
  std::vector<double> first, warm, known;
  for (int i = 0; i < repeats; ++i) {
    codegen::Compiler compiler;
    first.push_back(seconds_to_compile(compiler, make(1e-6 * (2 * i + 1))));
    const kernel::Kernel another = make(1e-6 * (2 * i + 2));
    warm.push_back(seconds_to_compile(compiler, another));
    known.push_back(seconds_to_compile(compiler, another));
  }
  std::printf("%s\n", name);
  print("first", first);
  print("warm", warm);
  print("known", known);
}

}  // namespace

int main(int argc, char** argv) {
  int repeats = 9;
  CLI::App app("How long kernels take to compile");
  app.add_option("--repeats", repeats)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  std::printf("%d times each            minimum      median\n", repeats);
  measure("oscillator step", oscillator, repeats);
  measure("J2 two-body step, RK4", j2_step, repeats);
  return 0;
}
