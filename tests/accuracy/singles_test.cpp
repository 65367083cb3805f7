// EAGLE_LONG: every number of single precision, for every function of one, against the C library in double
// precision, whose own error of an ulp of a double is 2^-29 here.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "engine/kernel/typing.h"
#include "tests/accuracy/runner.h"

namespace eagle::accuracy {
namespace {

using kernel::Opcode;
using Function = double (*)(double);

const std::map<Opcode, Function> functions = {{Opcode::exp, std::exp},
                                              {Opcode::exp2, std::exp2},
                                              {Opcode::expm1, std::expm1},
                                              {Opcode::log, std::log},
                                              {Opcode::log2, std::log2},
                                              {Opcode::log10, std::log10},
                                              {Opcode::log1p, std::log1p},
                                              {Opcode::erf, std::erf},
                                              {Opcode::erfc, std::erfc},
                                              {Opcode::sin, std::sin},
                                              {Opcode::cos, std::cos},
                                              {Opcode::tan, std::tan},
                                              {Opcode::asin, std::asin},
                                              {Opcode::acos, std::acos},
                                              {Opcode::atan, std::atan},
                                              {Opcode::sinh, std::sinh},
                                              {Opcode::cosh, std::cosh},
                                              {Opcode::tanh, std::tanh},
                                              {Opcode::asinh, std::asinh},
                                              {Opcode::acosh, std::acosh},
                                              {Opcode::atanh, std::atanh},
                                              {Opcode::cbrt, std::cbrt},
                                              {Opcode::rsqrt, [](double x) { return 1.0 / std::sqrt(x); }}};

// In ulp of a single; 0 for equal ends, infinite for others.
double error(double found, double wanted) {
  const auto nearest = static_cast<double>(static_cast<float>(wanted));
  if (std::isnan(found) || std::isnan(wanted)) return std::isnan(found) == std::isnan(wanted) ? 0 : INFINITY;
  if (std::isinf(found) || std::isinf(nearest)) return found == nearest ? 0 : INFINITY;
  if (found == 0 && nearest == 0) return std::signbit(found) == std::signbit(nearest) ? 0 : INFINITY;
  const int exponent = wanted == 0 ? -149 : std::max(std::ilogb(wanted) - 23, -149);
  return std::fabs(std::ldexp(found - wanted, -exponent));
}

class Singles : public testing::TestWithParam<Opcode> {};

TEST_P(Singles, AreWithinOneUlp) {
  const std::uint64_t stride = std::getenv("EAGLE_LONG") == nullptr ? 65'537 : 1;
  const Runner runner(GetParam(), kernel::Scalar::f32);
  const Function reference = functions.at(GetParam());
  constexpr std::uint64_t end = std::uint64_t{1} << 32, most = 1u << 20;
  double worst = 0;
  for (std::uint64_t at = 0; at < end;) {
    std::vector<Operands> operands;
    for (; at < end && operands.size() < most; at += stride)
      operands.push_back({static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(at))), 0, 0});
    const std::vector<double> found = runner.compiled(operands);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const double off = error(found[i], reference(operands[i][0]));
      ASSERT_LT(off, 1.0) << kernel::rule_of(GetParam()).name << " of " << std::hexfloat << operands[i][0];
      worst = std::max(worst, off);
    }
  }
  std::printf("%s of singles: %.4f ulp\n", std::string(kernel::rule_of(GetParam()).name).c_str(), worst);
}

std::vector<Opcode> codes() {
  std::vector<Opcode> all;
  for (const auto& [code, function] : functions) all.push_back(code);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Of, Singles, testing::ValuesIn(codes()), [](const auto& instance) {
  return std::string(kernel::rule_of(instance.param).name);
});

}  // namespace
}  // namespace eagle::accuracy
