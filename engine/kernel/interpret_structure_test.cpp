// What loops, switches, tables, vectors and positions mean.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "engine/kernel/interpret.h"
#include "engine/kernel/text.h"

namespace eagle::kernel {
namespace {

constexpr std::int64_t i64_min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t i64_max = std::numeric_limits<std::int64_t>::max();

Kernel parse(const std::string& text) {
  StatusOr<Kernel> kernel = from_text(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string() << "\n" << text;
  return kernel.ok() ? *kernel : Kernel{};
}

// The first committed value of a kernel whose entry values are integers.
std::int64_t run(const Kernel& kernel, const std::vector<std::int64_t>& entry) {
  std::vector<Bits> bits;
  for (const std::int64_t value : entry) bits.push_back({static_cast<std::uint64_t>(value)});
  return static_cast<std::int64_t>(interpret(kernel, bits)[0][0]);
}

// A plane of `width` components, one after the other.
template <typename T>
InterpreterPlane plane(std::vector<T>& values, std::size_t width = 1) {
  const std::size_t length = values.size() / width;
  return {reinterpret_cast<std::byte*>(values.data()), static_cast<std::int64_t>(length * sizeof(T)),
          static_cast<std::int64_t>(length)};
}

// ---- loops ----

// Counts up to a bound, which may never be reached.
Kernel counting(std::uint64_t max_trips) {
  return parse(
      "kernel @count real=f64 read %0 n: i64 output y: i64 { %1 = constant 0 : i64 "
      "%7 = while %1 max " +
      std::to_string(max_trips) +
      " -> i64 (%2) { %3 = lt %2, %0 : bool yield %3 } do (%4) "
      "{ %5 = constant 1 : i64 %6 = add %4, %5 : i64 yield %6 } yield %7 }");
}

TEST(While, RunsAsLongAsTheConditionHolds) {
  EXPECT_EQ(run(counting(1000), {7}), 7);
  EXPECT_EQ(run(counting(1000), {1}), 1);
  EXPECT_EQ(run(counting(1000), {0}), 0);
  EXPECT_EQ(run(counting(1000), {-5}), 0);
}

TEST(While, AnEndlessOneStopsAfterMaxTrips) {
  EXPECT_EQ(run(counting(1), {i64_max}), 1);
  EXPECT_EQ(run(counting(1000), {i64_max}), 1000);
  EXPECT_EQ(run(counting(1000), {1000}), 1000);
}

TEST(While, CarriesAllValuesAtOnce) {
  // Fibonacci's numbers by exchange: (a, b, i) <- (b, a + b, i + 1).
  const Kernel kernel = parse(R"(kernel @fibonacci real=f64 read %0 n: i64 output y: i64 {
    %1 = constant 0 : i64  %2 = constant 1 : i64
    %12, %13, %14 = while %1, %2, %1 max 100 -> i64, i64, i64 (%3, %4, %5) {
      %6 = lt %5, %0 : bool
      yield %6
    } do (%7, %8, %9) {
      %10 = add %7, %8 : i64
      %11 = add %9, %2 : i64
      yield %8, %10, %11
    }
    yield %12 })");
  EXPECT_EQ(run(kernel, {10}), 55);
  EXPECT_EQ(run(kernel, {90}), 2880067194370816120);
}

TEST(While, AnInnerOneStartsAgainInEveryTrip) {
  // For each i below n the inner loop adds 1 i times, but at most 4 times.
  const Kernel kernel = parse(R"(kernel @nested real=f64 read %0 n: i64 output y: i64 {
    %1 = constant 0 : i64  %2 = constant 1 : i64
    %18, %19 = while %1, %1 max 50 -> i64, i64 (%3, %4) {
      %5 = lt %4, %0 : bool
      yield %5
    } do (%6, %7) {
      %15, %16 = while %6, %1 max 4 -> i64, i64 (%8, %9) {
        %10 = lt %9, %7 : bool
        yield %10
      } do (%11, %12) {
        %13 = add %11, %2 : i64
        %14 = add %12, %2 : i64
        yield %13, %14
      }
      %17 = add %7, %2 : i64
      yield %15, %17
    }
    yield %18 })");
  EXPECT_EQ(run(kernel, {4}), 0 + 1 + 2 + 3);
  EXPECT_EQ(run(kernel, {7}), 0 + 1 + 2 + 3 + 4 + 4 + 4);
}

TEST(While, DoesNotLookAtTheConditionAgainAfterMaxTrips) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 i: i64 table t: bool output y: i64 {
    %5 = while %0 max 3 -> i64 (%1) { %2 = gather @t[%0] : bool yield %2 } do (%3) {
      %4 = add %3, %3 : i64 yield %4 }
    yield %5 })");
  std::vector<std::int64_t> i{5}, y(1);
  std::vector<std::uint8_t> t{1};
  const auto result = interpret_launch(kernel, std::vector{plane(i), plane(t), plane(y)}, 1, 1);
  EXPECT_EQ(y[0], 40);
  EXPECT_EQ(result.clamped, 3);
  t[0] = 0;
  EXPECT_EQ(interpret_launch(kernel, std::vector{plane(i), plane(t), plane(y)}, 1, 1).clamped, 1);
  EXPECT_EQ(y[0], 5);
}

// ---- switches ----

TEST(Switch, TakesTheNearestCase) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 s: i64 output y: i64 {
    %4 = switch %0 dispatch @group segmented -> i64
      case 0 { %1 = constant 10 : i64 yield %1 }
      case 1 { %2 = constant 20 : i64 yield %2 }
      case 2 { %3 = constant 30 : i64 yield %3 }
    yield %4 })");
  EXPECT_EQ(run(kernel, {0}), 10);
  EXPECT_EQ(run(kernel, {1}), 20);
  EXPECT_EQ(run(kernel, {2}), 30);
  EXPECT_EQ(run(kernel, {3}), 30);
  EXPECT_EQ(run(kernel, {-1}), 10);
  EXPECT_EQ(run(kernel, {i64_max}), 30);
  EXPECT_EQ(run(kernel, {i64_min}), 10);
}

TEST(Switch, OnlyTheTakenCaseRuns) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 s: i64 output y: i64 {
    %3 = switch %0 -> i64 case 0 { %1 = floor_div %0, %0 : i64 yield %1 }
                          case 1 { %2 = modulo %0, %0 : i64 yield %2 }
    yield %3 })");
  std::vector<std::int64_t> s{0, 1, 0, -1}, y(4);
  EXPECT_EQ(interpret_launch(kernel, std::vector{plane(s), plane(y)}, 4, 1).zero_divisions, 2);
  EXPECT_EQ(y, (std::vector<std::int64_t>{0, 0, 0, 1}));
}

// ---- tables ----

TEST(Gather, TheLastAxisIsTheInnermost) {
  const Kernel kernel =
      parse(R"(kernel @k real=f64 read %0 i: i64 read %1 j: i64 table t[row: 2, column: 3]: i64
    output y: i64 { %2 = gather @t[%0, %1] : i64 yield %2 })");
  std::vector<std::int64_t> i{0, 0, 0, 1, 1, 1}, j{0, 1, 2, 0, 1, 2}, t{10, 11, 12, 20, 21, 22}, y(6);
  const auto result = interpret_launch(kernel, std::vector{plane(i), plane(j), plane(t), plane(y)}, 6, 1);
  EXPECT_EQ(y, t);
  EXPECT_EQ(result.clamped, 0);
}

TEST(Gather, ClampsEachIndexAndCountsTheGatherOnce) {
  const Kernel kernel =
      parse(R"(kernel @k real=f64 read %0 i: i64 read %1 j: i64 table t[row: 2, column: 3]: i64
    output y: i64 { %2 = gather @t[%0, %1] : i64 yield %2 })");
  std::vector<std::int64_t> i{-1, 2, 0, 1, i64_min}, j{1, 1, 3, 2, i64_max}, t{10, 11, 12, 20, 21, 22}, y(5);
  const auto result = interpret_launch(kernel, std::vector{plane(i), plane(j), plane(t), plane(y)}, 5, 1);
  EXPECT_EQ(y, (std::vector<std::int64_t>{11, 21, 12, 22, 12}));
  EXPECT_EQ(result.clamped, 4);
}

TEST(Gather, WithoutAxesATableIsAsLongAsItsPlane) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 i: i64 table t: f64[2] output y: f64[2]
    { %1 = gather @t[%0] : f64[2] yield %1 })");
  std::vector<std::int64_t> i{2, 0, 3, -1};
  std::vector<double> t{1, 2, 3, 10, 20, 30}, y(8);
  const auto result = interpret_launch(kernel, std::vector{plane(i), plane(t, 2), plane(y, 2)}, 4, 1);
  EXPECT_EQ(y, (std::vector<double>{3, 1, 3, 1, 30, 10, 30, 10}));
  EXPECT_EQ(result.clamped, 2);
}

TEST(Gather, BooleansAreNotZero) {
  const Kernel kernel = parse(
      "kernel @k real=f64 read %0 i: i64 table t: bool output y: bool { %1 = gather @t[%0] : bool yield %1 "
      "}");
  std::vector<std::int64_t> i{0, 1};
  std::vector<std::uint8_t> t{0, 200}, y(2, 9);
  interpret_launch(kernel, std::vector{plane(i), plane(t), plane(y)}, 2, 1);
  EXPECT_EQ(y, (std::vector<std::uint8_t>{0, 1}));
}

// ---- counts ----

TEST(Counts, LeaveOutStoppedSamplesAndSidesThatDidNotRun) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 i: i64 read %1 c: bool table t: i64
    terminated %2 done: bool output y: i64 {
    %5 = if %1 -> i64 { %3 = gather @t[%0] : i64 yield %3 } else { %4 = floor_div %0, %0 : i64 yield %4 }
    yield %2, %5 })");
  std::vector<std::int64_t> i{9, 9, 0, 0, 9}, t{1}, y(5);
  std::vector<std::uint8_t> c{1, 1, 0, 0, 0}, done{0, 1, 0, 1, 0};
  const auto result =
      interpret_launch(kernel, std::vector{plane(i), plane(c), plane(t), plane(done), plane(y)}, 5, 3);
  EXPECT_EQ(result.clamped, 3);         // one sample, three steps
  EXPECT_EQ(result.zero_divisions, 3);  // another one
}

TEST(Counts, TakeEachComponentOfADivision) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 a: i64[3] read %1 b: i64[3] output y: i64[3]
    { %2 = modulo %0, %1 : i64[3] yield %2 })");
  std::vector<std::int64_t> a{7, 7, 7}, b{0, 4, 0}, y(3);
  const auto result = interpret_launch(kernel, std::vector{plane(a, 3), plane(b, 3), plane(y, 3)}, 1, 1);
  EXPECT_EQ(y, (std::vector<std::int64_t>{0, 3, 0}));
  EXPECT_EQ(result.zero_divisions, 2);
}

TEST(Counts, SelectHasRunBothOfItsOperands) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 a: i64 output y: i64 {
    %1 = constant 0 : i64 %2 = constant false : bool %3 = floor_div %0, %1 : i64
    %4 = select %2, %3, %0 : i64 yield %4 })");
  std::vector<std::int64_t> a{5}, y(1);
  EXPECT_EQ(interpret_launch(kernel, std::vector{plane(a), plane(y)}, 1, 1).zero_divisions, 1);
  EXPECT_EQ(y[0], 5);
}

// ---- positions and vectors ----

TEST(Positions, CountInTheWholeEnsembleAndRun) {
  const Kernel kernel = parse(R"(kernel @k real=f64 mutable %0 last: i64 output i: i64 output n: i64
    { %1 = sample_index : i64 %2 = n_samples : i64 %3 = step_index : i64 yield %3, %1, %2 })");
  std::vector<std::int64_t> last(3), i(3), n(3);
  const std::vector planes{plane(last), plane(i), plane(n)};
  interpret_launch(kernel, planes, 3, 4, {1000, 5000, 70});
  EXPECT_EQ(last, (std::vector<std::int64_t>{73, 73, 73}));
  EXPECT_EQ(i, (std::vector<std::int64_t>{1000, 1001, 1002}));
  EXPECT_EQ(n, (std::vector<std::int64_t>{5000, 5000, 5000}));
}

TEST(Vectors, AreComposedRowByRowAndTakenApart) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 a: i64 read %1 b: i64 read %2 m: i64[2,3]
    output y: i64[2,2] output z: i64[2] {
    %3 = compose %0, %1, %1, %0 : i64[2,2]  %4 = extract %2[2] : i64  %5 = extract %2[3] : i64
    %6 = compose %4, %5 : i64[2]  yield %3, %6 })");
  const std::vector<Bits> result = interpret(kernel, std::vector<Bits>{{1}, {2}, {10, 11, 12, 13, 14, 15}});
  EXPECT_EQ(result[0], (Bits{1, 2, 2, 1}));
  EXPECT_EQ(result[1], (Bits{12, 13}));
}

}  // namespace
}  // namespace eagle::kernel
