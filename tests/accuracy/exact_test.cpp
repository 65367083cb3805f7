// Functions that are exact, against MPFR or their own definition: every special combination and random bits,
// compiled and interpreted.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/kernel/typing.h"
#include "tests/accuracy/inputs.h"
#include "tests/accuracy/reference.h"
#include "tests/accuracy/report.h"
#include "tests/accuracy/runner.h"

namespace eagle::accuracy {
namespace {

using kernel::Opcode;
using kernel::Scalar;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// An MPFR function of numbers of double precision, rounded once to `bits` in the exponent range of the type.
double rounded(int bits, const std::function<int(mpfr_ptr)>& compute) {
  Big result(bits);
  const auto least = mpfr_get_emin(), most = mpfr_get_emax();
  mpfr_set_emin(bits == 53 ? -1073 : -148);
  mpfr_set_emax(bits == 53 ? 1024 : 128);
  int inexact = compute(result.get());
  inexact = mpfr_check_range(result.get(), inexact, MPFR_RNDN);
  mpfr_subnormalize(result.get(), inexact, MPFR_RNDN);
  mpfr_set_emin(least);
  mpfr_set_emax(most);
  return mpfr_get_d(result.get(), MPFR_RNDN);
}

double fused(const Operands& o, int bits) {
  Big a(53), b(53), c(53);
  mpfr_set_d(a.get(), o[0], MPFR_RNDN);
  mpfr_set_d(b.get(), o[1], MPFR_RNDN);
  mpfr_set_d(c.get(), o[2], MPFR_RNDN);
  return rounded(bits, [&](mpfr_ptr r) { return mpfr_fma(r, a.get(), b.get(), c.get(), MPFR_RNDN); });
}
double modulus(const Operands& o, int bits) {
  Big a(53), b(53);
  mpfr_set_d(a.get(), o[0], MPFR_RNDN);
  mpfr_set_d(b.get(), o[1], MPFR_RNDN);
  return rounded(bits, [&](mpfr_ptr r) { return mpfr_fmod(r, a.get(), b.get(), MPFR_RNDN); });
}
// Python's float.__mod__, with NaN for its exception.
double python_modulo(const Operands& o, int bits) {
  const double rest = modulus(o, bits);
  if (std::isnan(rest)) return rest;
  if (rest == 0) return std::copysign(0.0, o[1]);
  if ((rest < 0) == (o[1] < 0)) return rest;
  return bits == 53 ? rest + o[1] : static_cast<double>(static_cast<float>(rest + o[1]));
}
// CPython's float.__floordiv__, step by step; x / y where it raises.
double python_floor_division(const Operands& o, int) {
  const double x = o[0], y = o[1];
  if (y == 0 || std::isnan(x) || std::isnan(y)) return x / y;
  double rest = modulus(o, 53);
  double quotient = (x - rest) / y;
  if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1.0;
  if (std::isnan(rest)) return not_a_number;
  if (quotient == 0) return std::copysign(0.0, x / y);
  const double down = std::floor(quotient);
  return quotient - down > 0.5 ? down + 1.0 : down;
}
double clipped(const Operands& o, int) {
  if (std::isnan(o[0]) || std::isnan(o[1]) || std::isnan(o[2])) return not_a_number;
  const double above = o[0] < o[1] ? o[1] : o[0];
  return above > o[2] ? o[2] : above;
}
double signum(const Operands& o, int) {
  if (std::isnan(o[0])) return o[0];
  return o[0] > 0 ? 1.0 : o[0] < 0 ? -1.0 : 0.0;
}
double difference(const Operands& o, int bits) {
  if (std::isnan(o[0]) || std::isnan(o[1])) return not_a_number;
  if (!(o[0] > o[1])) return 0;
  return bits == 53 ? o[0] - o[1] : static_cast<double>(static_cast<float>(o[0] - o[1]));
}

// What each is of numbers of that many bits.
using Definition = double (*)(const Operands&, int bits);
const std::map<Opcode, Definition> definitions = {
    {Opcode::fma, fused},
    {Opcode::fmod, modulus},
    {Opcode::remainder, python_modulo},
    {Opcode::floor_quotient, python_floor_division},
    {Opcode::floor, [](const Operands& o, int) { return std::floor(o[0]); }},
    {Opcode::ceil, [](const Operands& o, int) { return std::ceil(o[0]); }},
    {Opcode::trunc, [](const Operands& o, int) { return std::trunc(o[0]); }},
    {Opcode::round, [](const Operands& o, int) { return std::round(o[0]); }},
    {Opcode::rint, [](const Operands& o, int) { return std::nearbyint(o[0]); }},
    {Opcode::sign, signum},
    {Opcode::copysign,
     [](const Operands& o, int) { return std::isnan(o[1]) ? std::fabs(o[0]) : std::copysign(o[0], o[1]); }},
    {Opcode::fdim, difference},
    {Opcode::clip, clipped},
    {Opcode::isnan, [](const Operands& o, int) { return std::isnan(o[0]) ? 1.0 : 0.0; }},
    {Opcode::isinf, [](const Operands& o, int) { return std::isinf(o[0]) ? 1.0 : 0.0; }},
    {Opcode::isfinite, [](const Operands& o, int) { return std::isfinite(o[0]) ? 1.0 : 0.0; }},
};

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// Bits of every kind, sums that cancel, products at the ends of the range, whole numbers and halves.
Operands random_exact(kernel::Random& random) {
  Operands o;
  for (double& x : o) {
    switch (random.below(4)) {
      case 0:
        x = std::bit_cast<double>(random.next());
        break;
      case 1:
        x = (static_cast<double>(random.below(4001)) - 2000) / 2;
        break;
      case 2:
        x = std::ldexp(static_cast<double>(random.next()), static_cast<int>(random.below(2200)) - 1150);
        break;
      default:
        x = (static_cast<double>(random.next() >> 11) * 0x1p-53 - 0.5) * 100;
    }
  }
  if (random.chance(30))
    o[2] = std::bit_cast<double>(std::bit_cast<std::uint64_t>(-o[0] * o[1]) + random.below(5) - 2);
  if (random.chance(20)) {  // a product about where numbers end
    int exponent = 0;
    std::frexp(o[0], &exponent);
    o[1] = std::ldexp(o[1], -1074 + static_cast<int>(random.below(120)) - 60 - exponent);
  }
  return o;
}

class Exact : public testing::TestWithParam<Opcode> {
protected:
  void compare(Scalar scalar) {
    const kernel::Rule& rule = kernel::rule_of(GetParam());
    const int bits = scalar == Scalar::f64 ? 53 : 24;
    SCOPED_TRACE("seed " + std::to_string(seed));
    kernel::Random random(seed);
    std::vector<Operands> operands = special_operands(rule.operands);
    const int count = std::getenv("EAGLE_LONG") == nullptr ? 100'000 : 10'000'000;
    for (int i = 0; i < count; ++i) operands.push_back(random_exact(random));
    if (scalar == Scalar::f32) round_to_singles(operands);
    const Runner runner(GetParam(), scalar);
    const std::vector<double> compiled = runner.compiled(operands);
    const std::vector<double> interpreted = runner.interpreted(operands);
#if defined(__x86_64__)
    // Without instructions that fuse or round to whole numbers.
    const std::vector<double> plain = Runner(GetParam(), scalar, "x86-64").compiled(operands);
#else
    const std::vector<double>& plain = compiled;
#endif
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Operands& o = operands[i];
      double wanted = definitions.at(GetParam())(o, bits);
      if (scalar == Scalar::f32) wanted = static_cast<double>(static_cast<float>(wanted));
      ASSERT_TRUE(same(compiled[i], wanted) && same(plain[i], wanted) && same(interpreted[i], wanted))
          << rule.name << "(" << std::hexfloat << o[0] << ", " << o[1] << ", " << o[2] << "): compiled "
          << compiled[i] << ", for a plain CPU " << plain[i] << ", interpreted " << interpreted[i]
          << ", expected " << wanted;
    }
  }
};

TEST_P(Exact, InDoublePrecision) { compare(Scalar::f64); }
TEST_P(Exact, InSinglePrecision) { compare(Scalar::f32); }

std::vector<Opcode> exact_codes() {
  std::vector<Opcode> codes;
  for (const auto& [code, definition] : definitions) codes.push_back(code);
  return codes;
}

INSTANTIATE_TEST_SUITE_P(Of, Exact, testing::ValuesIn(exact_codes()), [](const auto& instance) {
  return std::string(kernel::rule_of(instance.param).name);
});

}  // namespace
}  // namespace eagle::accuracy
