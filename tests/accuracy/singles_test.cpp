// Every number of single precision, for every function of one (EAGLE_LONG; else one in 65,537).
//
// The reference are glibc's vectors of double precision: right to 4 units of a double, which are 2^-27 of
// one of a single. So no error is found wrong by more than that, and MPFR looks at those that may be the
// largest, which makes the maximum exact. Without EAGLE_LONG it looks at all, to test the reference. Of even
// and odd functions the negative numbers are compared with the positive ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/kernel/typing.h"
#include "tests/accuracy/estimate.h"
#include "tests/accuracy/report.h"
#include "tests/accuracy/runner.h"

namespace eagle::accuracy {
namespace {

using kernel::Opcode;
using kernel::Scalar;

constexpr std::size_t piece = 1u << 14;  // stays in the cache

class Singles : public testing::TestWithParam<Opcode> {
protected:
  // Looks at all of them, and at their opposites.
  void look(std::span<float> operands) {
    const std::size_t n = operands.size();
    compare(operands);
    const Parity parity = parity_of(GetParam());
    before_ = ours_;
    for (float& x : operands) x = -x;
    if (parity == Parity::none) return compare(operands);
    runner_.compiled(operands, std::span(ours_).first(n));
    looked_at_ += n;
    for (std::size_t i = 0; i < n; ++i) {
      const float wanted = parity == Parity::odd ? -before_[i] : before_[i];
      const bool same = std::bit_cast<std::uint32_t>(ours_[i]) == std::bit_cast<std::uint32_t>(wanted);
      if (!same && !(std::isnan(ours_[i]) && std::isnan(wanted)))
        FAIL() << "not the opposite: " << describe(GetParam(), {static_cast<double>(operands[i]), 0, 0});
    }
  }

  void compare(std::span<const float> operands) {
    const std::size_t n = operands.size();
    std::ranges::copy(operands, wide_.begin());
    runner_.compiled(operands, std::span(ours_).first(n));
    reference_(std::span(wide_).first(n), std::span(wanted_).first(n));
    const double most =
        estimate_singles(std::span(ours_).first(n), std::span(wanted_).first(n), std::span(errors_).first(n));
    looked_at_ += n;
    if (!everything_ && most + margin_of_singles <= worst_) return;
    for (std::size_t i = 0; i < n && !HasFatalFailure(); ++i) {
      if (everything_ || errors_[i] + margin_of_singles > worst_) judge(i);
    }
  }

  void judge(std::size_t i) {
    const Operands operands = {wide_[i], 0, 0};
    evaluate(GetParam(), operands, exact_);
    const double error = ulps(static_cast<double>(ours_[i]), exact_, singles);
    ASSERT_LE(error, errors_[i] + margin_of_singles) << "the estimate of " << describe(GetParam(), operands);
    ASSERT_LT(error, 1.0) << describe(GetParam(), operands);
    if (error <= worst_) return;
    worst_ = error;
    worst_at_ = operands;
  }

  const bool everything_ = std::getenv("EAGLE_LONG") == nullptr;
  const Runner runner_{GetParam(), Scalar::f32};
  const Wholesale reference_ = wholesale(GetParam());
  std::vector<float> ours_ = std::vector<float>(piece), before_ = ours_;
  std::vector<double> wide_ = std::vector<double>(piece), wanted_ = wide_, errors_ = wide_;
  Big exact_{160};
  double worst_ = everything_ ? 0 : 0.49;  // none has less, so that MPFR need not look at it
  Operands worst_at_{};
  std::size_t looked_at_ = 0;
};

TEST_P(Singles, AreWithinOneUlp) {
  const std::uint64_t stride = everything_ ? 65'537 : 1;
  constexpr std::uint64_t end = std::uint64_t{1} << 31;  // of the positive ones
  std::vector<float> operands;
  for (std::uint64_t at = 0; at < end;) {
    operands.clear();
    for (; at < end && operands.size() < piece; at += stride)
      operands.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(at)));
    ASSERT_NO_FATAL_FAILURE(look(operands));
  }
  ASSERT_TRUE(everything_ || worst_ > 0.49) << "the largest error is not known";
  report(GetParam(), Scalar::f32, {worst_, describe(GetParam(), worst_at_), looked_at_});
}

std::vector<Opcode> functions_of_one() {
  std::vector<Opcode> all;
  std::ranges::copy_if(approximations(), std::back_inserter(all),
                       [](Opcode code) { return kernel::rule_of(code).operands == 1; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Of, Singles, testing::ValuesIn(functions_of_one()), [](const auto& instance) {
  return std::string(kernel::rule_of(instance.param).name);
});

}  // namespace
}  // namespace eagle::accuracy
