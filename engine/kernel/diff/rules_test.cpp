// The derivative of each operation: against differences where it is smooth, and at its ties and ends.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/kernel/builder.h"
#include "engine/kernel/diff/rules.h"
#include "engine/kernel/diff/testing.h"
#include "engine/kernel/typing.h"

namespace eagle::kernel::diff {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// y = op(a0, a1, ...), of scalars or of vectors of `width`.
Kernel kernel_of(Opcode code, int operands, int width, Scalar real = Scalar::f64) {
  KernelBuilder b("op", real);
  std::vector<KernelBuilder::Value> values;
  for (int i = 0; i < operands; ++i) {
    const std::string name = "a" + std::to_string(i);
    values.push_back(width == 1 ? b.scalar(name) : b.vector(name, width));
  }
  b.output("y", b.op(code, values));
  return *b.finish();
}

Data filled(const Kernel& kernel, const std::vector<std::vector<double>>& operands) {
  Data data(kernel, 1);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (std::size_t cell = 0; cell < operands[i].size(); ++cell) data.set_real(i, cell, operands[i][cell]);
  }
  return data;
}

Direction ones(const Data& data) {
  return direction_like(data, [] { return 1.0; });
}

// The derivative by each operand, from the reverse derivative, which must agree with the forward one.
std::vector<double> derivatives(const Kernel& kernel, const std::vector<double>& at) {
  std::vector<std::vector<double>> operands;
  for (const double x : at) operands.push_back({x});
  const Data data = filled(kernel, operands);
  const Derivative reverse = *vjp(kernel);
  Data back = data_for(reverse, data, 1, ones(data));
  back.launch(1);
  std::vector<double> found;
  for (std::size_t i = 0; i < at.size(); ++i) {
    found.push_back(back.real(at.size() + i, 0));  // behind the inputs
    Options by;
    by.wrt = {"a" + std::to_string(i)};
    const Derivative tangent = *jvp(kernel, by);
    Data ahead = data_for(tangent, data, 1, ones(data));
    ahead.launch(1);
    const double forward = ahead.real(tangent.planes.size() - 1, 0);
    EXPECT_TRUE(forward == found[i] || (std::isnan(forward) && std::isnan(found[i])))
        << "forwards " << forward << ", backwards " << found[i];
  }
  return found;
}

std::vector<double> derivatives(Opcode code, const std::vector<double>& at) {
  return derivatives(kernel_of(code, static_cast<int>(at.size()), 1), at);
}

double value(const Kernel& kernel, const std::vector<double>& at) {
  std::vector<std::vector<double>> operands;
  for (const double x : at) operands.push_back({x});
  Data data = filled(kernel, operands);
  data.launch(1);
  return data.real(at.size(), 0);
}

TEST(Rules, EveryOperationHasARow) {
  std::vector<Opcode> said;
  for (const RuleText& text : rule_texts()) said.push_back(text.code);
  std::vector<Opcode> known;
  for (const Rule& rule : rules()) known.push_back(rule.code);
  EXPECT_EQ(said, known);
}

// Points where each operation is smooth and defined.
std::vector<std::vector<double>> points_of(Opcode code, int operands) {
  std::vector<double> some = {-1.7, -0.6, 0.35, 0.8, 2.3};
  switch (code) {
    case Opcode::sqrt:
    case Opcode::rsqrt:
    case Opcode::log:
    case Opcode::log2:
    case Opcode::log10:
    case Opcode::pow:
      some = {0.35, 0.8, 2.3, 40.0};
      break;
    case Opcode::log1p:
      some = {-0.6, 0.35, 2.3};
      break;
    case Opcode::asin:
    case Opcode::acos:
    case Opcode::atanh:
      some = {-0.9, -0.6, 0.1, 0.35};
      break;
    case Opcode::acosh:
      some = {1.2, 2.3, 40.0};
      break;
    default:
      break;
  }
  std::vector<std::vector<double>> points;
  for (std::size_t i = 0; i < some.size(); ++i) {
    std::vector<double> point;
    for (int k = 0; k < operands; ++k)
      point.push_back(some[(i + static_cast<std::size_t>(k) * 2) % some.size()] * (1 + 0.125 * k));
    points.push_back(point);
  }
  return points;
}

TEST(Rules, AreTheLimitOfDifferences) {
  for (const Rule& rule : rules()) {
    if (!has_factor(rule.code) || rule.typing == Typing::integers) continue;
    const Kernel kernel = kernel_of(rule.code, rule.operands, 1);
    for (const std::vector<double>& at : points_of(rule.code, rule.operands)) {
      const std::vector<double> found = derivatives(kernel, at);
      for (std::size_t i = 0; i < at.size(); ++i) {
        const auto difference = [&](double h) {
          std::vector<double> up = at, down = at;
          up[i] += h;
          down[i] -= h;
          return (value(kernel, up) - value(kernel, down)) / (2 * h);
        };
        const double h = 2e-3 * std::abs(at[i]);
        const double a = difference(h), b = difference(h / 2), c = difference(h / 4);
        const double first = (4 * b - a) / 3, second = (4 * c - b) / 3;
        const double limit = (16 * second - first) / 15;  // Richardson's extrapolation, of order 6
        EXPECT_NEAR(found[i], limit, 1e-7 * (1 + std::abs(limit)))
            << rule.name << " by operand " << i << " at " << at[0] << (at.size() > 1 ? ", " : "")
            << (at.size() > 1 ? at[1] : 0.0);
      }
    }
  }
}

TEST(Rules, OfVectorsAreThoseOfTheirComponents) {
  for (const Rule& rule : rules()) {
    if (!has_factor(rule.code)) continue;
    const Kernel one = kernel_of(rule.code, rule.operands, 1);
    const Kernel three = kernel_of(rule.code, rule.operands, 3);
    const auto points = points_of(rule.code, rule.operands);
    std::vector<std::vector<double>> operands(static_cast<std::size_t>(rule.operands));
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < operands.size(); ++i) operands[i].push_back(points[c][i]);
    }
    const Data data = filled(three, operands);
    const StatusOr<Derivative> tried = vjp(three);
    ASSERT_TRUE(tried.ok()) << rule.name << ": " << tried.status().to_string();
    const Derivative& reverse = *tried;
    Data made = data_for(reverse, data, 1, ones(data));
    made.launch(1);
    for (std::size_t c = 0; c < 3; ++c) {
      const std::vector<double> wanted = derivatives(one, points[c]);
      for (std::size_t i = 0; i < operands.size(); ++i)
        EXPECT_EQ(made.real(operands.size() + i, c), wanted[i]) << rule.name << ", component " << c;
    }
  }
}

TEST(Rules, FloatsHaveTheirOwn) {
  const Kernel kernel = kernel_of(Opcode::exp, 1, 1, Scalar::f32);
  EXPECT_EQ(derivatives(kernel, {1.0}), std::vector<double>{static_cast<double>(2.7182817f)});
}

using Values = std::vector<double>;

TEST(Ties, OfMinimumsAndMaximumsAreTheFirstOperands) {
  for (const Opcode code : {Opcode::min, Opcode::max}) {
    EXPECT_EQ(derivatives(code, {2.0, 2.0}), (Values{1, 0}));
    EXPECT_EQ(derivatives(code, {0.0, -0.0}), (Values{1, 0}));
    EXPECT_EQ(derivatives(code, {nan, 2.0}), (Values{0, 1}));
    EXPECT_EQ(derivatives(code, {2.0, nan}), (Values{1, 0}));
  }
  EXPECT_EQ(derivatives(Opcode::min, {1.0, 2.0}), (Values{1, 0}));
  EXPECT_EQ(derivatives(Opcode::max, {1.0, 2.0}), (Values{0, 1}));
}

TEST(Ties, OfAbsIsOneAtBothZeros) {
  EXPECT_EQ(derivatives(Opcode::abs, {0.0}), Values{1});
  EXPECT_EQ(derivatives(Opcode::abs, {-0.0}), Values{1});
  EXPECT_EQ(derivatives(Opcode::abs, {-2.0}), Values{-1});
}

TEST(Ties, ClipPassesOnTheClosedInterval) {
  EXPECT_EQ(derivatives(Opcode::clip, {1.0, 1.0, 2.0}), (Values{1, 0, 0}));
  EXPECT_EQ(derivatives(Opcode::clip, {2.0, 1.0, 2.0}), (Values{1, 0, 0}));
  EXPECT_EQ(derivatives(Opcode::clip, {0.5, 1.0, 2.0}), (Values{0, 1, 0}));
  EXPECT_EQ(derivatives(Opcode::clip, {2.5, 1.0, 2.0}), (Values{0, 0, 1}));
  EXPECT_EQ(derivatives(Opcode::clip, {1.5, 3.0, 2.0}), (Values{0, 0, 1}));  // lo > hi gives hi
}

TEST(Ties, AtTheOriginAreZero) {
  EXPECT_EQ(derivatives(Opcode::hypot, {0.0, 0.0}), (Values{0, 0}));
  EXPECT_EQ(derivatives(Opcode::atan2, {0.0, 0.0}), (Values{0, 0}));
  EXPECT_EQ(derivatives(Opcode::sign, {0.0}), Values{0});
  EXPECT_EQ(derivatives(Opcode::fdim, {2.0, 2.0}), (Values{0, 0}));
}

TEST(Ties, RoundingIsFlatAtItsStepsToo) {
  for (const Opcode code : {Opcode::floor, Opcode::ceil, Opcode::trunc, Opcode::round, Opcode::rint}) {
    EXPECT_EQ(derivatives(code, {2.0}), Values{0});
    EXPECT_EQ(derivatives(code, {2.5}), Values{0});
  }
  EXPECT_EQ(derivatives(Opcode::floor_quotient, {7.0, 2.0}), (Values{0, 0}));
  EXPECT_EQ(derivatives(Opcode::fmod, {-7.0, 2.0}), (Values{1, 3}));
  EXPECT_EQ(derivatives(Opcode::remainder, {-7.0, 2.0}), (Values{1, 4}));
}

TEST(Ties, SignsAreThoseOfBothOperands) {
  EXPECT_EQ(derivatives(Opcode::copysign, {3.0, -2.0}), (Values{-1, 0}));
  EXPECT_EQ(derivatives(Opcode::copysign, {-3.0, -2.0}), (Values{1, 0}));
  EXPECT_EQ(derivatives(Opcode::copysign, {-0.0, 1.0}), (Values{1, 0}));
  EXPECT_EQ(derivatives(Opcode::copysign, {-3.0, nan}), (Values{-1, 0}));
}

TEST(Ends, OfRootsAndArcsAreInfinite) {
  EXPECT_EQ(derivatives(Opcode::sqrt, {0.0}), Values{infinity});
  EXPECT_EQ(derivatives(Opcode::cbrt, {0.0}), Values{infinity});
  EXPECT_EQ(derivatives(Opcode::asin, {1.0}), Values{infinity});
  EXPECT_EQ(derivatives(Opcode::asin, {-1.0}), Values{infinity});
  EXPECT_EQ(derivatives(Opcode::acos, {1.0}), Values{-infinity});
  EXPECT_EQ(derivatives(Opcode::acosh, {1.0}), Values{infinity});
  EXPECT_EQ(derivatives(Opcode::atanh, {1.0}), Values{infinity});
  EXPECT_EQ(derivatives(Opcode::log, {0.0}), Values{infinity});
  EXPECT_TRUE(std::isnan(derivatives(Opcode::sqrt, {-1.0})[0]));
}

TEST(Ends, OfPowers) {
  EXPECT_EQ(derivatives(Opcode::pow, {0.0, 2.0}), (Values{0, 0}));
  EXPECT_EQ(derivatives(Opcode::pow, {0.0, 1.0}), (Values{1, 0}));
  EXPECT_EQ(derivatives(Opcode::pow, {0.0, 0.5}), (Values{infinity, 0}));
  EXPECT_EQ(derivatives(Opcode::pow, {0.0, 0.0}), (Values{0, -infinity}));
  EXPECT_EQ(derivatives(Opcode::pow, {-2.0, 3.0})[0], 12);
  EXPECT_TRUE(std::isnan(derivatives(Opcode::pow, {-2.0, 3.0})[1]));
}

TEST(Ties, OfANormIsZeroAtTheOrigin) {
  KernelBuilder b("norm");
  const auto v = b.vector("a0", 2);
  const auto x = b.extract(v, 0), y = b.extract(v, 1);
  b.output("y", b.op(Opcode::sqrt, {b.add(b.mul(x, x), b.mul(y, y))}));
  const Kernel kernel = *b.finish();
  for (const auto& [at, wanted] :
       {std::pair{Values{0, 0}, Values{0, 0}}, std::pair{Values{3, -4}, Values{.6, -.8}}}) {
    const Data data = filled(kernel, {at});
    const Derivative reverse = *vjp(kernel);
    Data back = data_for(reverse, data, 1, ones(data));
    back.launch(1);
    EXPECT_DOUBLE_EQ(back.real(1, 0), wanted[0]);
    EXPECT_DOUBLE_EQ(back.real(1, 1), wanted[1]);
  }
}

}  // namespace
}  // namespace eagle::kernel::diff
