// Functions that approximate are within one unit in the last place of the exact value, and exact where that
// is special.
//
// The interpreter and the code compiled for this machine are to give the same bits, which are compared with
// MPFR. EAGLE_LONG: 10^7 random operands for each function. EAGLE_ACCURACY_OUT names a file to which every
// test appends "function type maximum operands"; docs/tools/numbers.py makes the manual's table of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "engine/kernel/typing.h"
#include "tests/accuracy/inputs.h"
#include "tests/accuracy/reference.h"
#include "tests/accuracy/runner.h"

namespace eagle::accuracy {
namespace {

using kernel::Opcode;
using kernel::Scalar;

constexpr std::uint64_t seed = 20'261'129;
constexpr double bound = 1.0;

std::size_t operands_to_try() { return std::getenv("EAGLE_LONG") == nullptr ? 60'000 : 10'000'000; }

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

struct Found {
  double error;
  Operands at;
};

class Accuracy : public testing::TestWithParam<Opcode> {
protected:
  Accuracy() : name_(kernel::rule_of(GetParam()).name), operands_(kernel::rule_of(GetParam()).operands) {}

  // The errors of all, the worst of them first. Fails for bits that differ.
  std::vector<Found> errors(const std::vector<Operands>& operands, Scalar scalar) {
    const Runner runner(GetParam(), scalar);
    const std::vector<double> ours = runner.compiled(operands), wanted = runner.interpreted(operands);
    const bool single = scalar == Scalar::f32;
    std::vector<Found> found;
    Big exact(160);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!same(ours[i], wanted[i])) {
        ADD_FAILURE() << describe(operands[i]) << ": compiled " << ours[i] << ", interpreted " << wanted[i];
        return {};
      }
      evaluate(GetParam(), operands[i], exact);
      found.push_back({ulps(ours[i], exact, single ? 24 : 53, single ? -149 : -1074), operands[i]});
    }
    std::ranges::sort(found, std::greater(), &Found::error);
    return found;
  }

  [[nodiscard]] std::string describe(const Operands& operands) const {
    char text[128];
    std::snprintf(text, sizeof text, operands_ == 1 ? "%s(%a)" : "%s(%a, %a)", name_.c_str(), operands[0],
                  operands[1]);
    return text;
  }

  void report(const char* type, const Found& worst, std::size_t count) {
    std::printf("%-6s %s  %.4f ulp at %s, of %zu\n", name_.c_str(), type, worst.error,
                describe(worst.at).c_str(), count);
    if (const char* out = std::getenv("EAGLE_ACCURACY_OUT"))
      std::ofstream(out, std::ios::app) << name_ << ' ' << type << ' ' << worst.error << ' ' << count << '\n';
  }

  std::string name_;
  int operands_;
};

TEST_P(Accuracy, IsWithinOneUlpInDoublePrecision) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  kernel::Random random(seed);
  std::vector<Operands> operands = special_operands(operands_);
  const std::vector<Operands> known = known_operands(GetParam());
  operands.insert(operands.end(), known.begin(), known.end());
  Found worst{0, {}};
  std::size_t count = 0;
  // In pieces, which keeps memory small; each piece ends with the neighbours of its worst operands.
  for (std::size_t left = operands_to_try(); left > 0 || !operands.empty();) {
    const std::size_t now = std::min<std::size_t>(left, 60'000);
    const std::vector<Operands> more = random_operands(GetParam(), now, random);
    operands.insert(operands.end(), more.begin(), more.end());
    left -= now;
    for (const bool again : {false, true}) {
      const std::vector<Found> found = errors(operands, Scalar::f64);
      ASSERT_FALSE(found.empty());
      count += operands.size();
      ASSERT_LT(found[0].error, bound) << describe(found[0].at);
      if (found[0].error > worst.error) worst = found[0];
      operands.clear();
      if (again) break;
      for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 20); ++i) {
        for (int k = 0; k < 200; ++k) operands.push_back(near(found[i].at, random));
      }
    }
  }
  report("f64", worst, count);
}

TEST_P(Accuracy, IsWithinOneUlpInSinglePrecision) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  kernel::Random random(seed);
  std::vector<Operands> operands = special_operands(operands_);
  const std::vector<Operands> more = random_operands(GetParam(), operands_to_try() / 3, random);
  operands.insert(operands.end(), more.begin(), more.end());
  round_to_singles(operands);
  const std::vector<Found> found = errors(operands, Scalar::f32);
  ASSERT_FALSE(found.empty());
  ASSERT_LT(found[0].error, bound) << describe(found[0].at);
  report("f32", found[0], operands.size());
}

INSTANTIATE_TEST_SUITE_P(Of, Accuracy, testing::ValuesIn(approximations().begin(), approximations().end()),
                         [](const auto& instance) {
                           return std::string(kernel::rule_of(instance.param).name);
                         });

}  // namespace
}  // namespace eagle::accuracy
