// Random kernels: the reverse derivative against the forward one (the same product, from both sides), and
// both against central differences.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "engine/kernel/diff/testing.h"
#include "engine/kernel/text.h"

namespace eagle::kernel::diff {
namespace {

constexpr std::int64_t samples = 2;

std::uint64_t first_seed() {
  const char* given = std::getenv("EAGLE_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

// How many seeds: EAGLE_LONG (tests/run.sh --long) makes a long run.
std::uint64_t kernels_to_try() { return std::getenv("EAGLE_LONG") == nullptr ? 1'000 : 20'000; }

// Numbers without anything special about them, so that a difference is a difference of smooth functions
// mostly.
Data random_data(const Kernel& kernel, Random& random) {
  std::vector<std::int64_t> lengths;
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a)
    lengths.push_back(1 + static_cast<std::int64_t>(random.below(5)));
  Data data(kernel, samples, lengths);
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
    const Argument& argument = kernel.arguments[a];
    for (std::size_t cell = 0; cell < data.cells(a); ++cell) {
      if (data.is_real(a)) {
        data.set_real(a, cell, 0.25 + 1.5 * static_cast<double>(random.below(1u << 20)) / (1u << 20));
      } else if (argument.role == Role::terminated) {
        data.set_bits(a, cell, random.chance(20) ? 1 : 0);
      } else if (argument.type.scalar == Scalar::boolean) {
        data.set_bits(a, cell, random.below(2));
      } else {
        data.set_bits(a, cell, random.below(7));
      }
    }
  }
  return data;
}

double unit(Random& random) { return static_cast<double>(random.below(1u << 20)) / (1u << 19) - 1; }

// What may be differentiated: no maximum over samples, and something real on both ends.
std::optional<Kernel> candidate(std::uint64_t seed, int ops) {
  RandomKernelOptions options;
  options.ops = ops;
  Kernel kernel = random_kernel(seed, options);
  if (kernel.real != Scalar::f64) return std::nullopt;
  return kernel;
}

struct Scale {
  double sum = 0;
  double size = 0;  // of the terms
  void add(double a, double b) {
    sum += a * b;
    size += std::abs(a * b);
  }
};

// The sum of results times `seeds`, of a kernel that ran.
Scale weighted(const Data& data, const Direction& seeds) {
  Scale scale;
  for (std::size_t a = 0; a < seeds.size(); ++a) {
    if (!is_result(data.kernel().arguments[a])) continue;
    for (std::size_t cell = 0; cell < seeds[a].size(); ++cell) scale.add(seeds[a][cell], data.real(a, cell));
  }
  return scale;
}

struct Products {
  Scale forward;
  Scale backward;
};

std::optional<Products> products(const Kernel& kernel, const Data& data, const Direction& direction,
                                 const Direction& seeds, std::string& error) {
  const StatusOr<Derivative> reverse = vjp(kernel);
  const StatusOr<Derivative> tangent = jvp(kernel);
  if (!reverse.ok() || !tangent.ok()) {
    const Status status = reverse.ok() ? tangent.status() : reverse.status();
    if (status.reason() != Reason::bad_value) error = status.to_string();
    return std::nullopt;
  }
  Products made;
  Data back = data_for(*reverse, data, samples, seeds);
  back.launch(samples);
  for (std::size_t a = 0; a < reverse->planes.size(); ++a) {
    const Plane& plane = reverse->planes[a];
    const Argument& argument = kernel.arguments[plane.argument];
    if (plane.part != Part::bar || !is_input(argument)) continue;
    for (std::size_t cell = 0; cell < back.cells(a); ++cell) {
      // A param's adjoint is that of one sample.
      const std::size_t of = argument.role == Role::param ? 0 : cell;
      made.backward.add(back.real(a, cell), direction[plane.argument][of]);
    }
  }
  Data ahead = data_for(*tangent, data, samples, direction);
  // What an accumulator's tangent was before is added to.
  for (std::size_t a = 0; a < tangent->planes.size(); ++a) {
    if (tangent->planes[a].part != Part::dot || tangent->kernel.arguments[a].role != Role::accum) continue;
    for (std::size_t cell = 0; cell < ahead.cells(a); ++cell)
      ahead.set_real(a, cell, direction[tangent->planes[a].argument][cell]);
  }
  ahead.launch(samples);
  for (std::size_t a = 0; a < tangent->planes.size(); ++a) {
    const Plane& plane = tangent->planes[a];
    if (plane.part != Part::dot || !is_result(kernel.arguments[plane.argument])) continue;
    for (std::size_t cell = 0; cell < ahead.cells(a); ++cell)
      made.forward.add(ahead.real(a, cell), seeds[plane.argument][cell]);
  }
  return made;
}

Data moved(const Data& data, const Direction& direction, double by) {
  Data other = data;
  for (std::size_t a = 0; a < direction.size(); ++a) {
    if (!is_input(data.kernel().arguments[a])) continue;
    for (std::size_t cell = 0; cell < direction[a].size(); ++cell)
      other.set_real(a, cell, data.real(a, cell) + by * direction[a][cell]);
  }
  return other;
}

// (F(x + h d) - F(x - h d)) / 2h, for F the weighted results. `size`: how much of it is rounding.
Scale difference(const Data& data, const Direction& direction, const Direction& seeds, double h) {
  Data up = moved(data, direction, h);
  Data down = moved(data, direction, -h);
  up.launch(samples);
  down.launch(samples);
  const Scale a = weighted(up, seeds), b = weighted(down, seeds);
  return {(a.sum - b.sum) / (2 * h), (a.size + b.size) / (2 * h)};
}

struct Compared {
  int products = 0;
  int differences = 0;
};

// One kernel at one random place.
void compare(const Kernel& kernel, std::uint64_t seed, Compared& compared) {
  SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(kernel));
  Random random(seed * 77 + 5);
  const Data data = random_data(kernel, random);
  const Direction direction = direction_like(data, [&] { return unit(random); });
  const Direction seeds = direction_like(data, [&] { return unit(random); });
  std::string error;
  const auto made = products(kernel, data, direction, seeds, error);
  ASSERT_EQ(error, "");
  if (!made || !std::isfinite(made->forward.size) || !std::isfinite(made->backward.size)) return;
  ++compared.products;
  ASSERT_NEAR(made->forward.sum, made->backward.sum, 1e-7 * (made->forward.size + made->backward.size));

  // Smooth here: differences of three widths agree, and so do their extrapolations.
  const Scale d1 = difference(data, direction, seeds, 1e-3);
  const Scale d2 = difference(data, direction, seeds, 5e-4);
  const Scale d3 = difference(data, direction, seeds, 2.5e-4);
  const double e1 = (4 * d2.sum - d1.sum) / 3, e2 = (4 * d3.sum - d2.sum) / 3;
  const double limit = (16 * e2 - e1) / 15;
  const double scale = std::abs(limit) + 1;
  if (!std::isfinite(limit) || std::abs(e2 - e1) > 3e-8 * scale || d3.size > 1e7 * scale) return;
  ++compared.differences;
  ASSERT_NEAR(made->backward.sum, limit, 1e-7 * scale);
  ASSERT_NEAR(made->forward.sum, limit, 1e-7 * scale);
}

TEST(Properties, BothDirectionsGiveOneProductWhichIsTheLimitOfDifferences) {
  Compared compared;
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + kernels_to_try(); ++seed) {
    const std::optional<Kernel> kernel = candidate(seed, 25);
    if (!kernel) continue;
    compare(*kernel, seed, compared);
    if (HasFatalFailure()) return;
  }
  std::printf("from seed %llu: %d products, %d differences\n", static_cast<unsigned long long>(first),
              compared.products, compared.differences);
  EXPECT_GT(compared.products, static_cast<int>(kernels_to_try() / 5));
  EXPECT_GT(compared.differences, static_cast<int>(kernels_to_try() / 10));
}

TEST(Properties, SoItIsForDerivativesThemselves) {
  Compared compared;
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + kernels_to_try() / 2; ++seed) {
    const std::optional<Kernel> kernel = candidate(seed, 14);
    if (!kernel) continue;
    for (const auto& derivative : {vjp(*kernel), jvp(*kernel)}) {
      if (!derivative.ok()) continue;  // it gives no reals
      compare(derivative->kernel, seed, compared);
      if (HasFatalFailure()) return;
    }
  }
  std::printf("from seed %llu: %d products, %d differences\n", static_cast<unsigned long long>(first),
              compared.products, compared.differences);
  EXPECT_GT(compared.products, static_cast<int>(kernels_to_try() / 10));
  EXPECT_GT(compared.differences, static_cast<int>(kernels_to_try() / 20));
}

}  // namespace
}  // namespace eagle::kernel::diff
