// Accumulators, reductions and random words: what verifies, how it reads as text, and what it means.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "engine/kernel/additions.h"
#include "engine/kernel/builder.h"
#include "engine/kernel/interpret.h"
#include "engine/kernel/random_words.h"
#include "engine/kernel/reduce_reference.h"
#include "engine/kernel/text.h"

namespace eagle::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Kernel parsed(const std::string& text) {
  StatusOr<Kernel> kernel = from_text(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return kernel.ok() ? *std::move(kernel) : Kernel{};
}

constexpr const char* deposit = R"(kernel @deposit real=f64
  read %0 x: f64
  read %1 i: i64
  accum grid[row: 2, column: 3]: f64
  reduce max most: f64
{
  %2 = mul %0, %0 : f64
  %3 = gt %0, %2 : bool
  accum_add %2 at @grid[%1, %1]
  if %3 {
    accum_add %0 at @grid[%1, %1]
    yield
  } else {
    yield
  }
  yield %2
}
)";

TEST(Shared, HasATextForm) {
  const Kernel kernel = parsed(deposit);
  EXPECT_EQ(to_text(kernel), deposit);
  EXPECT_TRUE(kernel.shares());
  EXPECT_EQ(kernel.arguments[3].reduce, ReduceOp::max);
  EXPECT_TRUE(kernel.body.ops[2].results.empty());
}

TEST(Shared, PlanesAreReadAndWrittenAsTheyAreUsed) {
  const auto of = [](const char* text) { return accesses(parsed(text)); };
  const auto used = of(deposit);
  EXPECT_TRUE(used[2].read && used[2].written);   // adds to what is there
  EXPECT_TRUE(!used[3].read && used[3].written);  // nothing of what was there stays
  const auto masked = of(R"(kernel @k real=f64 read %0 x: f64 terminated %1 done: bool accum unused: f64
    reduce sum total: f64 { yield %1, %0 })");
  EXPECT_TRUE(!masked[2].read && !masked[2].written);
  EXPECT_TRUE(!masked[3].read && masked[3].written);
}

struct Refusal {
  const char* name;
  const char* text;
  const char* expected;
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }
class RefusedSharing : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedSharing, SaysWhatWasExpectedAndFound) {
  const StatusOr<Kernel> kernel =
      from_text(std::string("kernel @k real=f64 read %0 x: f64 ") + GetParam().text);
  ASSERT_FALSE(kernel.ok());
  EXPECT_THAT(kernel.status().message(), HasSubstr(GetParam().expected));
}

INSTANTIATE_TEST_SUITE_P(
    Shared, RefusedSharing,
    ::testing::Values(
        Refusal{"accum_of_bools", "accum h: bool { yield }",
                "expected numbers for the accum argument 'h', found bool"},
        Refusal{"vector_reduction", "reduce sum s: f64[2] { yield }", "expected a scalar (no extents)"},
        Refusal{"sum_of_bools", "reduce sum s: bool { yield }", "expected all or any (of bools)"},
        Refusal{"all_of_reals", "reduce all s: f64 { yield %0 }", "expected sum, max or min"},
        Refusal{"no_such_reduction", "reduce mean s: f64 { yield %0 }",
                "expected a reduction (sum, max, min, all, any)"},
        Refusal{"reading_an_accum", "accum h: f64 { %1 = convert %0 : i64 %2 = gather @h[%1] : f64 yield }",
                "gather: expected a table argument, found argument 1, a accum one"},
        Refusal{"adding_to_a_table", "table h: f64 { %1 = convert %0 : i64 accum_add %0 at @h[%1] yield }",
                "accum_add: expected an accum argument, found argument 1, a table one"},
        Refusal{"wrong_value", "accum h: i64 { %1 = convert %0 : i64 accum_add %0 at @h[%1] yield }",
                "accum_add: expected i64 (the type of the accumulator's elements), found f64"},
        Refusal{"wrong_index", "accum h: f64 { accum_add %0 at @h[%0] yield }",
                "accum_add: expected i64 (an index), found f64"},
        Refusal{"too_few_indices",
                "accum h[a: 2, b: 2]: f64 { %1 = convert %0 : i64 accum_add %0 at @h[%1] yield }",
                "expected 3 operands (the value and one for each axis of the accumulator), found 2"},
        Refusal{"a_result", "accum h: f64 { %1 = convert %0 : i64 %2 = accum_add %0 at @h[%1] yield }",
                "expected no result before accum_add"},
        Refusal{"no_reduced_value", "reduce sum s: f64 { yield }", "expected 1 values"},
        Refusal{"real_seed", "{ %1 = random_words %0, %0 : i64[4] yield }",
                "random_words: expected i64 (the seed)"}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(Shared, AKernelNeedsAPlaneOfSamplesBesideThem) {
  const StatusOr<Kernel> kernel = from_text("kernel @k real=f64 accum h: f64 reduce sum s: f64 { yield }");
  EXPECT_THAT(kernel.status().message(), HasSubstr("planes of other lengths only"));
}

TEST(Shared, BuilderRefusesAtOnce) {
  KernelBuilder b("k");
  const auto x = b.scalar("x");
  b.table("t", {});
  b.accum_add("t", x, {b.integer(0)});
  EXPECT_THAT(b.status().message(),
              HasSubstr("accum_add: expected an accumulator named 't', found a table argument"));
}

TEST(Shared, InterpreterAddsInOrderAndDropsWhatIsOutside) {
  const Kernel kernel = parsed(deposit);
  double x[] = {0.5, 2.0, 0.25, 1.0};
  std::int64_t i[] = {0, 1, 5, -1};
  double grid[] = {10, 20, 30, 40, 50, 60};
  double most = 0;
  const auto plane = [](auto& values, std::int64_t length) {
    return InterpreterPlane{reinterpret_cast<std::byte*>(&values), 0, length};
  };
  const InterpreterPlane planes[] = {plane(x, 4), plane(i, 4), plane(grid, 6), plane(most, 1)};
  const InterpreterResult result = interpret_launch(kernel, planes, 4, 1);
  // (0, 0) gets 0.25 and, since 0.5 > 0.25, also 0.5; (1, 1) gets 4; sample 2 misses twice, sample 3 once.
  EXPECT_THAT(grid, ElementsAre(10.75, 20, 30, 40, 54, 60));
  EXPECT_EQ(result.dropped, 3);
  EXPECT_EQ(most, 4.0);
}

TEST(Shared, AdditionsKnowWhereTheyStand) {
  const Kernel kernel = parsed(deposit);
  const Additions found = additions_of(kernel);
  ASSERT_EQ(found.sites.size(), 2u);
  EXPECT_TRUE(found.by_sample);
  EXPECT_EQ(found.bytes_per_sample, 2 * 16);
  EXPECT_EQ(found.sites[0].op, &kernel.body.ops[2]);
  EXPECT_FALSE(found.sites[0].conditional);
  EXPECT_TRUE(found.sites[1].conditional);
  const Kernel looping = parsed(R"(kernel @k real=f64 read %0 n: i64 accum h: i64 {
    while max 9 { %1 = constant true : bool yield %1 } do { accum_add %0 at @h[%0] yield } yield })");
  EXPECT_FALSE(additions_of(looping).by_sample);
}

// The bits that the generator is defined by: uniform numbers (w + 1) * 2^-32 of sample 0 and seed 0.
TEST(RandomWords, AreThoseOfPhilox) {
  const auto uniform = [](std::uint64_t seed, std::uint64_t counter) {
    return std::bit_cast<std::uint64_t>(
        std::ldexp(static_cast<double>(random_word(seed, counter, 0)) + 1, -32));
  };
  EXPECT_EQ(uniform(0, 0), 0x3FD989FA35800000u);
  EXPECT_EQ(uniform(0, 1), 0x3FEC2D38B1C00000u);
  EXPECT_EQ(uniform(0, 2), 0x3FE78AF589A00000u);
  EXPECT_EQ(uniform(0, 3), 0x3FE3601B7B200000u);
  EXPECT_EQ(uniform(0, 4), 0x3FEF1C9994A00000u);
  EXPECT_EQ(uniform(0, 7), 0x3FA2FDFED0000000u);
  EXPECT_EQ(uniform(0, 9), 0x3FD471CCA9C00000u);
  EXPECT_EQ(uniform(~std::uint64_t{0}, 0), 0x3FDCA91DC2800000u);
}

// The known answers of Random123 for philox4x32-10: counter and key of zeros, and of ones.
TEST(RandomWords, GiveThePublishedKnownAnswers) {
  EXPECT_EQ(random_word(0, 0, 0), 0x6627e8d5u);
  EXPECT_EQ(random_word(0, 1, 0), 0xe169c58du);
  EXPECT_EQ(random_word(0, 2, 0), 0xbc57ac4cu);
  EXPECT_EQ(random_word(0, 3, 0), 0x9b00dbd8u);
}

TEST(RandomWords, DependOnTheSampleOfTheWholeEnsemble) {
  const Kernel kernel = parsed(R"(kernel @k real=f64 read %0 c: i64 output w: i64[4]
    { %1 = random_words %0, %0 : i64[4] yield %1 })");
  const std::vector<Bits> entry = {{6}};
  const auto words = interpret(kernel, entry, {}, {41, 100, 0});
  for (std::uint64_t j = 0; j < 4; ++j) EXPECT_EQ(words[0][j], random_word(6, 6 + j, 41));
}

TEST(ReduceReference, TreatsNanAndZerosAsWritten) {
  const auto of = [](ReduceOp op, std::vector<double> x) {
    std::vector<std::uint64_t> bits;
    for (const double value : x) bits.push_back(std::bit_cast<std::uint64_t>(value));
    return std::bit_cast<double>(reduce(op, Scalar::f64, bits));
  };
  EXPECT_EQ(of(ReduceOp::sum, {1e16, 1, -1e16}), (1e16 + -1e16) + 1);  // (x0 + x2) + x1
  EXPECT_TRUE(std::signbit(of(ReduceOp::sum, {-0.0, -0.0})));
  EXPECT_FALSE(std::signbit(of(ReduceOp::max, {-0.0, 0.0})));
  EXPECT_TRUE(std::signbit(of(ReduceOp::min, {0.0, -0.0})));
  EXPECT_TRUE(std::isnan(of(ReduceOp::max, {1, std::nan(""), 2})));
}

}  // namespace
}  // namespace eagle::kernel
