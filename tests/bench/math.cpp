// Functions of whole arrays: ours, compiled; libmvec (4 ulp); SLEEF (1 ulp). One thread.
//
//   build/release/bin/bench_math [--samples N] [--repeats R]
//
// The mixed formula is sin(x) exp(-x x) + log1p(|x|) tanh(x) + |x|^0.3. Forms run in turn, R times;
// nanoseconds an element are the minimum, and the errors are in ulp against long double, over the numbers
// that were timed (the mixed formula's error is relative). Single functions run over a block that stays in
// the cache.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/codegen/compiler.h"
#include "engine/kernel/builder.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/typing.h"
#include "tests/bench/math_twin.h"
#include "tests/bench/need.h"

namespace {

using namespace eagle;
using bench::need;
using kernel::KernelBuilder;
using kernel::Opcode;
using Numbers = std::vector<double>;
using Work = std::function<void(const double*, const double*, double*, std::int64_t)>;
using Reference = std::function<long double(long double, long double)>;

// Compiled code as a function of arrays; its kernel has operands and one output.
Work runner(codegen::Compiler& compiler, const kernel::Kernel& kernel) {
  const std::shared_ptr<const codegen::Code> code = need(compiler.compile(kernel, {})).code;
  const std::size_t operands = kernel.arguments.size() - 1;
  return [code, operands](const double* a, const double* b, double* y, std::int64_t n) {
    const auto bytes = [](const double* p) { return reinterpret_cast<std::byte*>(const_cast<double*>(p)); };
    std::vector<std::byte*> planes = {bytes(a), bytes(b)};
    planes.resize(operands);
    planes.push_back(bytes(y));
    const std::vector<std::int64_t> strides(planes.size(), 0), lengths(planes.size(), 1);
    const std::vector<std::uint64_t> params(planes.size(), 0);
    codegen::KernelCall call;
    call.planes = planes.data();
    call.component_strides = strides.data();
    call.params = params.data();
    call.lengths = lengths.data();
    call.end = n;
    code->function()(&call);
  };
}

kernel::Kernel mixed() {
  KernelBuilder b("mixed");
  const auto x = b.scalar("x");
  const auto size = b.op(Opcode::abs, {x});
  const auto of = [&](Opcode code, KernelBuilder::Value v) { return b.op(code, {v}); };
  const auto bell = b.mul(of(Opcode::sin, x), of(Opcode::exp, b.mul(b.neg(x), x)));
  const auto step = b.mul(of(Opcode::log1p, size), of(Opcode::tanh, x));
  b.output("y", b.add(b.add(bell, step), b.op(Opcode::pow, {size, b.real(0.3)})));
  return need(b.finish());
}
kernel::Kernel single(const kernel::Rule& rule) {
  KernelBuilder b{std::string(rule.name)};
  std::vector<KernelBuilder::Value> operands = {b.scalar("a")};
  if (rule.operands == 2) operands.push_back(b.scalar("b"));
  b.output("y", b.op(rule.code, operands));
  return need(b.finish());
}

long double mixed_reference(long double x, long double) {
  return std::sin(x) * std::exp(-x * x) + std::log1p(std::fabs(x)) * std::tanh(x) +
         std::pow(std::fabs(x), 0.3L);
}

struct Form {
  std::string name;
  Work work;
  double seconds = 1e300;
};

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The largest error of `y`, in ulp of the exact result or as it is.
double error(const Numbers& a, const Numbers& b, const Numbers& y, std::size_t n, const Reference& exact,
             bool absolute) {
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const long double wanted = exact(a[i], b[i]);
    const double ulp =
        absolute ? 1.0 : std::ldexp(1.0, std::max(std::ilogb(static_cast<double>(wanted)), -1022) - 52);
    worst = std::max(worst, static_cast<double>(std::fabs((y[i] - wanted) / ulp)));
  }
  return worst;
}

void measure(const char* title, std::vector<Form> forms, const Numbers& a, const Numbers& b,
             std::int64_t block, int repeats, const Reference& exact, bool absolute = false) {
  Numbers y(a.size());
  const auto n = static_cast<std::int64_t>(a.size());
  for (int round = 0; round < repeats; ++round) {
    for (Form& form : forms) {
      form.seconds = std::min(form.seconds, seconds([&] {
                                for (std::int64_t at = 0; at < n; at += block)
                                  form.work(a.data(), b.data(), y.data(), block);
                              }));
    }
  }
  std::printf("%-8s", title);
  const auto checked = static_cast<std::size_t>(std::min<std::int64_t>(block, 100'000));
  for (Form& form : forms) {
    form.work(a.data(), b.data(), y.data(), block);
    std::printf("  %-7s %7.3f ns %8.2g %s", form.name.c_str(),
                1e9 * form.seconds / static_cast<double>(n / block * block),
                error(a, b, y, checked, exact, absolute), absolute ? "   " : "ulp");
  }
  std::printf("   ratio %.2f\n", forms[0].seconds / forms[1].seconds);
}

// Uniform in [low, high), the same in every run.
Numbers numbers(std::size_t n, double low, double high, std::uint64_t seed) {
  kernel::Random random(seed);
  Numbers result(n);
  for (double& x : result) x = low + (high - low) * static_cast<double>(random.next() >> 11) * 0x1p-53;
  return result;
}

struct Operands {
  double low, high, b_low, b_high;
  Reference exact;
};
const std::map<std::string_view, Operands> operands = {
    {"exp", {-20, 20, 0, 1, [](auto x, auto) { return std::exp(x); }}},
    {"exp2", {-20, 20, 0, 1, [](auto x, auto) { return std::exp2(x); }}},
    {"expm1", {-5, 5, 0, 1, [](auto x, auto) { return std::expm1(x); }}},
    {"log", {0, 100, 0, 1, [](auto x, auto) { return std::log(x); }}},
    {"log2", {0, 100, 0, 1, [](auto x, auto) { return std::log2(x); }}},
    {"log10", {0, 100, 0, 1, [](auto x, auto) { return std::log10(x); }}},
    {"log1p", {-0.9, 10, 0, 1, [](auto x, auto) { return std::log1p(x); }}},
    {"sin", {-10, 10, 0, 1, [](auto x, auto) { return std::sin(x); }}},
    {"cos", {-10, 10, 0, 1, [](auto x, auto) { return std::cos(x); }}},
    {"tan", {-10, 10, 0, 1, [](auto x, auto) { return std::tan(x); }}},
    {"asin", {-1, 1, 0, 1, [](auto x, auto) { return std::asin(x); }}},
    {"acos", {-1, 1, 0, 1, [](auto x, auto) { return std::acos(x); }}},
    {"atan", {-10, 10, 0, 1, [](auto x, auto) { return std::atan(x); }}},
    {"sinh", {-10, 10, 0, 1, [](auto x, auto) { return std::sinh(x); }}},
    {"cosh", {-10, 10, 0, 1, [](auto x, auto) { return std::cosh(x); }}},
    {"tanh", {-5, 5, 0, 1, [](auto x, auto) { return std::tanh(x); }}},
    {"asinh", {-10, 10, 0, 1, [](auto x, auto) { return std::asinh(x); }}},
    {"acosh", {1, 10, 0, 1, [](auto x, auto) { return std::acosh(x); }}},
    {"atanh", {-1, 1, 0, 1, [](auto x, auto) { return std::atanh(x); }}},
    {"erf", {-4, 4, 0, 1, [](auto x, auto) { return std::erf(x); }}},
    {"cbrt", {-10, 10, 0, 1, [](auto x, auto) { return std::cbrt(x); }}},
    {"pow", {0, 10, -10, 10, [](auto x, auto y) { return std::pow(x, y); }}},
    {"atan2", {-1, 1, -1, 1, [](auto x, auto y) { return std::atan2(x, y); }}},
    {"hypot", {-1, 1, -1, 1, [](auto x, auto y) { return std::hypot(x, y); }}},
};

}  // namespace

int main(int argc, char** argv) {
  std::int64_t samples = 10'000'000;
  int repeats = 9;
  CLI::App app("Functions of whole arrays");
  app.add_option("--samples", samples)->check(CLI::Range(100'000, 1'000'000'000));
  app.add_option("--repeats", repeats)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  codegen::Compiler compiler;
  const auto wide = numbers(static_cast<std::size_t>(samples), -4, 4, 1);
  std::vector<Form> forms = {
      {"eagle", runner(compiler, mixed())},
      {"libmvec", [](auto x, auto, auto y, auto n) { bench::mixed_libmvec(x, y, n); }}};
  Numbers trial(8);
  if (bench::mixed_sleef(wide.data(), trial.data(), 8))
    forms.push_back({"SLEEF", [](auto x, auto, auto y, auto n) { (void)bench::mixed_sleef(x, y, n); }});
  measure("mixed", forms, wide, wide, samples, repeats, mixed_reference, true);

  constexpr std::int64_t block = 4096;
  for (const bench::ArrayFunction& f : bench::array_functions()) {
    const Operands& of = operands.at(f.name);
    std::vector<Form> both = {{"eagle", runner(compiler, single(*kernel::find_rule(f.name)))},
                              {"libmvec", f.libmvec}};
    if (f.sleef != nullptr) both.push_back({"SLEEF", f.sleef});
    measure(std::string(f.name).c_str(), both, numbers(64 * block, of.low, of.high, 2),
            numbers(64 * block, of.b_low, of.b_high, 3), block, repeats, of.exact);
  }
  return 0;
}
