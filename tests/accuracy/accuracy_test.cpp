// Functions that approximate are within one unit in the last place of the exact value, and exact where that
// is special.
//
// The interpreter and the code compiled for this machine are to give the same bits, which are compared with
// MPFR. EAGLE_LONG: 10^7 random operands for each function, of which MPFR sees those whose error the C
// library's long double functions cannot put below the largest one found so far (and one in 64 beside, to
// test that), so that the largest error is exact all the same. EAGLE_ACCURACY_OUT names a file to which every
// test appends "function type maximum operands"; docs/tools/numbers.py makes the manual's table of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "engine/kernel/typing.h"
#include "tests/accuracy/estimate.h"
#include "tests/accuracy/inputs.h"
#include "tests/accuracy/reference.h"
#include "tests/accuracy/report.h"
#include "tests/accuracy/runner.h"

namespace eagle::accuracy {
namespace {

using kernel::Opcode;
using kernel::Scalar;

constexpr double bound = 1.0;
constexpr std::size_t piece = 60'000;  // operands at a time, which keeps memory small
constexpr std::size_t lineages = 24;

bool is_long() { return std::getenv("EAGLE_LONG") != nullptr; }

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

struct Found {
  double error;  // an estimate
  Operands at;
};

class Accuracy : public testing::TestWithParam<Opcode> {
protected:
  Accuracy() : operands_(kernel::rule_of(GetParam()).operands) {}

  // Special, known and random operands, the neighbours of the worst, and climbs from the worst of all.
  void search(Scalar scalar) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    kernel::Random random(seed);
    const Format& format = scalar == Scalar::f32 ? singles : doubles;
    const Runner runner(GetParam(), scalar);
    std::vector<Operands> operands = special_operands(operands_);
    const std::vector<Operands> known = known_operands(GetParam(), scalar);
    operands.insert(operands.end(), known.begin(), known.end());
    std::vector<Found> best;
    for (std::size_t left = is_long() ? 10'000'000 : piece; left > 0 || !operands.empty();) {
      const std::size_t now = std::min(left, piece);
      const std::vector<Operands> more = random_operands(GetParam(), now, random);
      operands.insert(operands.end(), more.begin(), more.end());
      left -= now;
      std::vector<Found> found = look(runner, operands, format);
      operands.clear();
      for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 20); ++i) {
        for (int k = 0; k < 200; ++k) operands.push_back(near(found[i].at, 20, format, random));
      }
      const std::vector<Found> around = look(runner, operands, format);
      operands.clear();
      if (HasFatalFailure()) return;
      best.insert(best.end(), found.begin(), found.begin() + std::min(found.size(), lineages));
      best.insert(best.end(), around.begin(), around.begin() + std::min(around.size(), lineages));
      std::ranges::sort(best, std::greater(), &Found::error);
      best.resize(std::min(best.size(), lineages));
    }
    climb(runner, std::move(best), format, random);
    if (!HasFatalFailure()) report(GetParam(), scalar, {worst_, describe(GetParam(), worst_at_), looked_at_});
  }

private:
  // The estimates of the errors of all, the largest first. Fails for bits that differ and at errors above the
  // bound.
  std::vector<Found> look(const Runner& runner, std::vector<Operands>& operands, const Format& format) {
    if (format.precision == singles.precision) round_to_singles(operands);
    const std::vector<double> ours = runner.compiled(operands), wanted = runner.interpreted(operands);
    std::vector<Found> found;
    found.reserve(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!same(ours[i], wanted[i])) {
        ADD_FAILURE() << describe(GetParam(), operands[i]) << ": compiled " << ours[i] << ", interpreted "
                      << wanted[i];
        return {};
      }
      found.push_back({estimate(GetParam(), operands[i], ours[i], format), operands[i]});
      judge(found.back(), ours[i], format);
    }
    looked_at_ += operands.size();
    std::ranges::sort(found, std::greater(), &Found::error);
    return found;
  }

  void judge(const Found& found, double ours, const Format& format) {
    const double most = found.error + margin_of_estimates(format);
    const bool checked = !is_long() || ++judged_ % 64 == 0;
    if (most <= worst_ && !checked) return;
    evaluate(GetParam(), found.at, exact_);
    const double error = ulps(ours, exact_, format);
    ASSERT_LE(error, most) << "the estimate of " << describe(GetParam(), found.at);
    ASSERT_LT(error, bound) << describe(GetParam(), found.at);
    if (error <= worst_) return;
    worst_ = error;
    worst_at_ = found.at;
  }

  // From each of `best` to the worst of a hundred others around it, again and again, near and far. Every few
  // rounds the one that got least far starts again from a random place.
  void climb(const Runner& runner, std::vector<Found> best, const Format& format, kernel::Random& random) {
    const int rounds = is_long() ? 400 : 4;
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
      std::vector<Operands> tried;
      for (const Found& from : best) {
        for (int k = 0; k < 100; ++k) {
          const int reach = static_cast<int>(random.below(static_cast<std::uint64_t>(format.precision) - 7));
          tried.push_back(near(from.at, reach, format, random));
        }
      }
      if (round % 8 == 7) {
        std::ranges::min_element(best, {}, &Found::error)->error = 0;
        const std::vector<Operands> fresh = random_operands(GetParam(), 100, random);
        tried.insert(tried.end(), fresh.begin(), fresh.end());
      }
      for (const Found& found : look(runner, tried, format)) {
        if (std::ranges::find(best, found.at, &Found::at) != best.end()) continue;
        Found& least = *std::ranges::min_element(best, {}, &Found::error);
        if (found.error <= least.error) break;
        least = found;
      }
    }
  }

  int operands_;
  Big exact_{160};
  double worst_ = 0;
  Operands worst_at_{};
  std::size_t looked_at_ = 0, judged_ = 0;
};

TEST_P(Accuracy, IsWithinOneUlpInDoublePrecision) { search(Scalar::f64); }
TEST_P(Accuracy, IsWithinOneUlpInSinglePrecision) { search(Scalar::f32); }

INSTANTIATE_TEST_SUITE_P(Of, Accuracy, testing::ValuesIn(approximations().begin(), approximations().end()),
                         [](const auto& instance) {
                           return std::string(kernel::rule_of(instance.param).name);
                         });

}  // namespace
}  // namespace eagle::accuracy
