#include "engine/run/reduction/reduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "engine/kernel/float_environment.h"
#include "engine/kernel/reduce_reference.h"
#include "engine/run/reduction/golden_sums.h"

namespace eagle::run {
namespace {

using kernel::ReduceOp;
using kernel::Scalar;

template <typename T>
constexpr Scalar scalar_of = std::is_same_v<T, double>         ? Scalar::f64
                             : std::is_same_v<T, float>        ? Scalar::f32
                             : std::is_same_v<T, std::int64_t> ? Scalar::i64
                             : std::is_same_v<T, std::int32_t> ? Scalar::i32
                                                               : Scalar::boolean;

template <typename T>
std::uint64_t bits(T value) {
  std::uint64_t result = 0;
  std::memcpy(&result, &value, sizeof(T));
  return result;
}

template <typename T>
T reduced(const Reducer& reducer, const std::vector<T>& x) {
  const kernel::FloatEnvironment environment;
  Partial partial;
  reducer.append(partial, reinterpret_cast<const std::byte*>(x.data()), 0,
                 static_cast<std::int64_t>(x.size()));
  T result;
  reducer.finish(partial, reinterpret_cast<std::byte*>(&result));
  return result;
}

template <typename T>
void expect_same(T found, T expected) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(found) && std::isnan(expected)) return;
  }
  EXPECT_EQ(bits(found), bits(expected)) << +found << " where " << +expected << " was expected";
}

TEST(Reduction, GivesTheGoldenSumsAtEveryVectorLevel) {
  for (const std::string_view level : vector_levels()) {
    for (const GoldenSum& golden : golden_sums) {
      SCOPED_TRACE(std::string(level) + ", " + std::to_string(golden.n));
      const std::vector<double> x = golden_samples(golden.n);
      const std::vector<float> narrow(x.begin(), x.end());
      expect_same(reduced(reducer_for({ReduceOp::sum, Scalar::f64}, level), x), golden.f64);
      expect_same(reduced(reducer_for({ReduceOp::sum, Scalar::f64, true}, level), x), golden.f64_compensated);
      expect_same(reduced(reducer_for({ReduceOp::sum, Scalar::f32}, level), narrow), golden.f32);
      expect_same(reduced(reducer_for({ReduceOp::sum, Scalar::f32, true}, level), narrow),
                  golden.f32_compensated);
    }
  }
}

// From the same source as the golden sums.
TEST(Reduction, GivesTheGoldenSumsOfSpecialNumbers) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    std::vector<double> x;
    double sum;
    double compensated;
  };
  const double huge = 0x1.1ccf385ebc8a0p+1023;
  const std::vector<Case> cases = {
      {{huge, huge, -huge}, huge, huge},
      {{1.0, 0x1.1c37937e08000p+53, -0x1.1c37937e08000p+53}, 0.0, 1.0},
      {{inf, 1.0}, inf, inf},
      {{inf, -inf}, nan, nan},
      {std::vector<double>(300, -0.0), -0.0, 0.0},
  };
  for (const std::string_view level : vector_levels()) {
    for (const Case& c : cases) {
      SCOPED_TRACE(std::string(level));
      expect_same(reduced(reducer_for({ReduceOp::sum, Scalar::f64}, level), c.x), c.sum);
      expect_same(reduced(reducer_for({ReduceOp::sum, Scalar::f64, true}, level), c.x), c.compensated);
    }
  }
}

template <typename T>
std::vector<T> random_values(std::size_t n, std::mt19937_64& random) {
  std::vector<T> x(n);
  for (T& value : x) {
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(
          std::ldexp(static_cast<double>(random()) - 9e18, static_cast<int>(random() % 60) - 90));
      if (random() % 50 == 0) value = random() % 2 == 0 ? T(0) : -T(0);
    } else if constexpr (std::is_same_v<T, std::uint8_t>) {
      value = random() % 1000 == 0 ? 0 : static_cast<T>(1 + random() % 255);
    } else {
      value = static_cast<T>(random());
    }
  }
  return x;
}

constexpr std::size_t lengths[] = {1,   2,   3,   7,    8,    15,   16,   17,   31,   63,    64,    65,   127,
                                   255, 256, 257, 1000, 4095, 4096, 4097, 8192, 9999, 16384, 65537, 70001};

// Every op over every type, at every length, against the definition; maxima also with a NaN somewhere.
template <typename T>
void compare_with_reference(std::vector<ReduceOp> ops) {
  std::mt19937_64 random(20261129);
  for (const std::size_t n : lengths) {
    for (const bool with_nan : {false, true}) {
      std::vector<T> x = random_values<T>(n, random);
      if constexpr (std::is_floating_point_v<T>) {
        if (with_nan) x[random() % n] = std::numeric_limits<T>::quiet_NaN();
      }
      std::vector<std::uint64_t> values;
      for (const T value : x) values.push_back(bits(value));
      for (const ReduceOp op : ops) {
        const std::uint64_t expected = kernel::reduce(op, scalar_of<T>, values);
        T wanted;
        std::memcpy(&wanted, &expected, sizeof(T));
        for (const std::string_view level : vector_levels()) {
          SCOPED_TRACE(std::string(kernel::name_of(op)) + " of " + std::to_string(n) + ", " +
                       std::string(level));
          expect_same(reduced(reducer_for({op, scalar_of<T>}, level), x), wanted);
        }
      }
    }
  }
}

TEST(Reduction, OfDoublesIsTheReference) {
  compare_with_reference<double>({ReduceOp::sum, ReduceOp::max, ReduceOp::min});
}
TEST(Reduction, OfFloatsIsTheReference) {
  compare_with_reference<float>({ReduceOp::sum, ReduceOp::max, ReduceOp::min});
}
TEST(Reduction, OfLongIntegersIsTheReference) {
  compare_with_reference<std::int64_t>({ReduceOp::sum, ReduceOp::max, ReduceOp::min});
}
TEST(Reduction, OfIntegersIsTheReference) {
  compare_with_reference<std::int32_t>({ReduceOp::sum, ReduceOp::max, ReduceOp::min});
}
TEST(Reduction, OfBoolsIsTheReference) {
  compare_with_reference<std::uint8_t>({ReduceOp::all, ReduceOp::any});
}

TEST(Reduction, OfZerosHasOneSign) {
  const std::vector<double> x = {-0.0, 0.0, -0.0};
  const std::vector<double> y = {0.0, -0.0};
  for (const std::string_view level : vector_levels()) {
    expect_same(reduced(reducer_for({ReduceOp::max, Scalar::f64}, level), x), 0.0);
    expect_same(reduced(reducer_for({ReduceOp::min, Scalar::f64}, level), x), -0.0);
    expect_same(reduced(reducer_for({ReduceOp::min, Scalar::f64}, level), y), -0.0);
  }
}

TEST(Reduction, OfTheNeutralElementChangesNothing) {
  std::mt19937_64 random(7);
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
    std::vector<double> x = random_values<double>(3000, random);
    const double neutral = std::bit_cast<double>(kernel::neutral_bits(op, Scalar::f64));
    const double before = reduced(reducer_for({op, Scalar::f64}), x);
    x.insert(x.end(), 2000, neutral);
    expect_same(reduced(reducer_for({op, Scalar::f64}), x), before);
  }
}

// Any cut at leaves, in any number of parts that are made apart and combined, is the same tree.
TEST(Reduction, InPartsThatAreCombinedIsTheSame) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const kernel::FloatEnvironment environment;
  for (const bool compensated : {false, true}) {
    const Reducer& reducer = reducer_for({ReduceOp::sum, Scalar::f64, compensated});
    const std::vector<double> x = random_values<double>(300'001, random);
    const double whole = reduced(reducer, x);
    const auto* bytes = reinterpret_cast<const std::byte*>(x.data());
    const auto end = static_cast<std::int64_t>(x.size());
    for (int round = 0; round < 50; ++round) {
      Partial all;
      for (std::int64_t base = 0; base < end;) {
        Partial part;
        for (std::uint64_t pieces = 1 + random() % 3; pieces > 0 && base < end; --pieces) {
          const std::int64_t leaves = 1 + static_cast<std::int64_t>(random() % (compensated ? 12 : 200));
          const std::int64_t count = std::min(leaves * reducer.leaf_samples(), end - base);
          reducer.append(part, bytes + 8 * base, base, count);
          base += count;
        }
        reducer.append(all, part);
      }
      double result = 0;
      reducer.finish(all, reinterpret_cast<std::byte*>(&result));
      expect_same(result, whole);
    }
  }
}

}  // namespace
}  // namespace eagle::run
