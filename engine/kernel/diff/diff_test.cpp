// Derivatives of whole kernels: what planes they have, known values, stopped samples, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "engine/kernel/diff/testing.h"
#include "engine/kernel/text.h"

namespace eagle::kernel::diff {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Kernel parse(const std::string& text) {
  StatusOr<Kernel> kernel = from_text(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string() << "\n" << text;
  return kernel.ok() ? *kernel : Kernel{};
}

Derivative must(StatusOr<Derivative> derivative) {
  EXPECT_TRUE(derivative.ok()) << derivative.status().to_string();
  return derivative.ok() ? *derivative : Derivative{};
}

std::size_t place(const Kernel& kernel, const std::string& name) {
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
    if (kernel.arguments[a].name == name) return a;
  }
  ADD_FAILURE() << "no argument " << name << " in\n" << to_text(kernel);
  return 0;
}

// Runs a kernel over planes that are given by name; the others are zeros.
class Launch {
public:
  Launch(Kernel kernel, std::int64_t samples, const std::vector<std::int64_t>& lengths = {})
      : kernel_(std::move(kernel)), samples_(samples), data_(kernel_, samples, lengths) {}
  Launch& set(const std::string& name, const std::vector<double>& values) {
    const std::size_t a = place(kernel_, name);
    EXPECT_EQ(values.size(), data_.cells(a)) << name;
    for (std::size_t cell = 0; cell < values.size(); ++cell) {
      if (data_.is_real(a)) {
        data_.set_real(a, cell, values[cell]);
      } else {
        data_.set_bits(a, cell, static_cast<std::uint64_t>(static_cast<std::int64_t>(values[cell])));
      }
    }
    return *this;
  }
  Launch& launch() {
    data_.launch(samples_);
    return *this;
  }
  std::vector<double> get(const std::string& name) {
    const std::size_t a = place(kernel_, name);
    std::vector<double> values;
    for (std::size_t cell = 0; cell < data_.cells(a); ++cell) values.push_back(data_.real(a, cell));
    return values;
  }

private:
  Kernel kernel_;
  std::int64_t samples_;
  Data data_;
};

std::vector<std::string> signature(const Kernel& kernel) {
  std::vector<std::string> lines;
  for (const Argument& argument : kernel.arguments)
    lines.push_back(std::string(name_of(argument.role)) + " " + argument.name);
  return lines;
}

// ---- signatures

constexpr const char* every_role = R"(kernel @roles real=f64
  read %0 x: f64  read %1 i: i64  mutable %2 s: f64[2]  param %3 p: f64  terminated %4 done: bool
  table t: f64  accum h[row: 4]: f64  reduce sum r: f64  output y: f64  output k: i64
{
  %5 = gather @t[%1] : f64
  %6 = mul %0, %5 : f64
  %7 = mul %6, %3 : f64
  accum_add %7 at @h[%1]
  %8 = mul %2, %2 : f64[2]
  yield %8, %4, %7, %6, %1
})";

TEST(Vjp, HasTheInputsOfTheKernelAndAnAdjointForEveryRealPlane) {
  const Derivative made = must(vjp(parse(every_role)));
  EXPECT_THAT(signature(made.kernel), ElementsAre("read x", "read i", "read s", "param p", "read done",
                                                  "table t", "output bar_x", "mutable bar_s", "output bar_p",
                                                  "accum bar_t", "table bar_h", "table bar_r", "read bar_y"));
  EXPECT_EQ(made.kernel.name, "roles_vjp");
  EXPECT_EQ(made.kernel.derivative_of, "roles");
}

TEST(Jvp, HasTheInputsOfTheKernelAndATangentForEveryRealPlane) {
  const Derivative made = must(jvp(parse(every_role)));
  EXPECT_THAT(signature(made.kernel),
              ElementsAre("read x", "read i", "read s", "param p", "read done", "table t", "read dot_x",
                          "mutable dot_s", "param dot_p", "table dot_t", "accum dot_h", "reduce dot_r",
                          "output dot_y"));
}

TEST(Vjp, WrtChoosesWhatIsDifferentiatedBy) {
  const Kernel kernel = parse(every_role);
  Options options;
  options.wrt = {"p", "x"};
  options.accumulate = {"x"};
  options.sum_params = true;
  EXPECT_THAT(signature(must(vjp(kernel, options)).kernel),
              ElementsAre("read x", "read i", "read s", "param p", "read done", "table t", "mutable bar_x",
                          "read bar_s", "reduce bar_p", "table bar_h", "table bar_r", "read bar_y"));
  EXPECT_THAT(signature(must(jvp(kernel, options)).kernel),
              ElementsAre("read x", "read i", "read s", "param p", "read done", "table t", "read dot_x",
                          "output dot_s", "param dot_p", "accum dot_h", "reduce dot_r", "output dot_y"));
}

TEST(Vjp, SaysWhichInputsItLooksAt) {
  const Kernel kernel =
      parse(R"(kernel @k real=f64 read %0 x: f64 param %1 a: f64 param %2 b: f64 output y: f64
    { %3 = mul %1, %0 : f64 %4 = add %3, %2 : f64 yield %4 })");
  const Derivative made = must(vjp(kernel));
  ASSERT_THAT(signature(made.kernel), ElementsAre("read x", "param a", "param b", "output bar_x",
                                                  "output bar_a", "output bar_b", "read bar_y"));
  EXPECT_TRUE(made.planes[0].needed);
  EXPECT_TRUE(made.planes[1].needed);
  EXPECT_FALSE(made.planes[2].needed);
}

TEST(Vjp, NamesThatAreTakenGetAnUnderscore) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 x: f64 read %1 bar_x: f64 output y: f64
    { %2 = mul %0, %1 : f64 yield %2 })");
  EXPECT_THAT(signature(must(vjp(kernel)).kernel),
              ElementsAre("read x", "read bar_x", "output bar_x_", "output bar_bar_x", "read bar_y"));
}

TEST(Vjp, TheStepCanBeAParam) {
  const Kernel kernel = parse(R"(kernel @k real=f64 mutable %0 x: f64
    { %1 = step_index : i64 %2 = convert %1 : f64 %3 = mul %0, %2 : f64 yield %3 })");
  Options options;
  options.step_param = true;
  const Derivative made = must(vjp(kernel, options));
  EXPECT_EQ(made.planes.back().part, Part::step);
  Launch run(made.kernel, 1);
  run.set("step", {3}).set("bar_x", {2}).launch();
  EXPECT_EQ(run.get("bar_x"), std::vector<double>{6});
}

// ---- known values

// v' = v + dt (-9.81 - k x if x < 0 else -9.81), the acceptance kernel of docs/manual/kernels.md.
constexpr const char* contact_spring = R"(kernel @contact real=f64
  mutable %0 x: f64  mutable %1 v: f64  param %2 k: f64  param %3 dt: f64  terminated %4 done: bool
{
  %5 = constant 0 : f64
  %6 = constant -0x1.39eb851eb851fp+3 : f64
  %7 = lt %0, %5 : bool
  %10 = if %7 -> f64 {
    %8 = mul %2, %0 : f64
    %9 = sub %6, %8 : f64
    yield %9
  } else {
    yield %6
  }
  %11 = mul %3, %10 : f64
  %12 = add %1, %11 : f64
  %13 = constant -0.5 : f64
  %14 = lt %0, %13 : bool
  yield %0, %12, %14
})";

TEST(Acceptance, ContactSpringWithItsMask) {
  const Kernel kernel = parse(contact_spring);
  const Derivative made = must(vjp(kernel));
  Launch run(made.kernel, 5);
  run.set("x", {.3, 0, -.1, -.2, -.8}).set("v", {-1, -1, -1, -1, -1}).set("k", {1000}).set("dt", {.01});
  run.set("done", {0, 0, 0, 0, 1}).set("bar_v", {1, 1, 1, 1, 1}).launch();
  EXPECT_EQ(run.get("bar_x"), (std::vector<double>{0, 0, -10, -10, 0}));
  EXPECT_EQ(run.get("bar_k"), (std::vector<double>{0, 0, .001, .002, 0}));
  EXPECT_EQ(run.get("bar_v"), (std::vector<double>{1, 1, 1, 1, 1}));
}

TEST(Acceptance, ContactSpringForwards) {
  const Derivative made = must(jvp(parse(contact_spring)));
  Launch run(made.kernel, 5);
  run.set("x", {.3, 0, -.1, -.2, -.8}).set("k", {1000}).set("dt", {.01}).set("done", {0, 0, 0, 0, 1});
  run.set("dot_x", {1, 1, 1, 1, 1}).set("dot_v", {0, 0, 0, 0, 3}).launch();
  EXPECT_EQ(run.get("dot_v"), (std::vector<double>{0, 0, -10, -10, 3}));
  EXPECT_EQ(run.get("dot_x"), (std::vector<double>{1, 1, 1, 1, 1}));
}

TEST(Vjp, ParamsAreSummedOnRequest) {
  Options options;
  options.sum_params = true;
  const Derivative made = must(vjp(parse(contact_spring), options));
  Launch run(made.kernel, 5);
  run.set("x", {.3, 0, -.1, -.2, -.8}).set("k", {1000}).set("dt", {.01}).set("done", {0, 0, 0, 0, 1});
  run.set("bar_v", {1, 1, 1, 1, 1}).launch();
  EXPECT_DOUBLE_EQ(run.get("bar_k")[0], .003);
}

TEST(Vjp, AccumulatedAdjointsAreAddedTo) {
  const Kernel kernel =
      parse(R"(kernel @k real=f64 read %0 x: f64 output y: f64 { %1 = mul %0, %0 : f64 yield %1 })");
  Options options;
  options.accumulate = {"x"};
  const Derivative made = must(vjp(kernel, options));
  Launch run(made.kernel, 2);
  run.set("x", {3, 5}).set("bar_y", {1, 2}).set("bar_x", {100, 200}).launch();
  EXPECT_EQ(run.get("bar_x"), (std::vector<double>{106, 220}));
}

TEST(Vjp, ALookUpScattersToTheElementThatWasRead) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 i: i64 table t: f64 output y: f64
    { %1 = gather @t[%0] : f64 %2 = mul %1, %1 : f64 yield %2 })");
  const Derivative made = must(vjp(kernel));
  Launch run(made.kernel, 5, {0, 3, 3, 0});
  run.set("i", {-7, 1, 1, 2, 99}).set("t", {10, 20, 30}).set("bar_y", {1, 1, 2, 3, 4}).launch();
  EXPECT_EQ(run.get("bar_t"), (std::vector<double>{20, 40 + 80, 3 * 60 + 4 * 60}));
}

TEST(Vjp, AnAdditionReadsTheAdjointOfItsElement) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 x: f64 read %1 i: i64 accum h: f64
    { %2 = mul %0, %0 : f64 accum_add %2 at @h[%1] yield })");
  const Derivative made = must(vjp(kernel));
  Launch run(made.kernel, 4, {0, 0, 0, 2});
  run.set("x", {1, 2, 3, 4}).set("i", {0, 1, 2, -1}).set("bar_h", {10, 100}).launch();
  EXPECT_EQ(run.get("bar_x"), (std::vector<double>{20, 400, 0, 0}));
}

// ---- sides that are not taken

TEST(Vjp, TheSideOfASelectThatIsNotTakenAddsNothing) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 x: f64 output y: f64 {
    %1 = constant 0 : f64  %2 = gt %0, %1 : bool  %3 = sqrt %0 : f64  %4 = log %3 : f64  %5 = mul %4, %3 : f64
    %6 = select %2, %5, %1 : f64  yield %6 })");
  Launch run(must(vjp(kernel)).kernel, 3);
  run.set("x", {0, -1, 1}).set("bar_y", {1, 1, 1}).launch();
  EXPECT_EQ(run.get("bar_x"), (std::vector<double>{0, 0, .5}));
}

TEST(Vjp, TheBranchThatIsNotTakenAddsNothing) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 x: f64 output y: f64 {
    %1 = constant 0 : f64  %2 = gt %0, %1 : bool  %3 = sqrt %0 : f64
    %5 = if %2 -> f64 { %4 = add %3, %3 : f64 yield %4 } else { yield %1 }
    yield %5 })");
  Launch run(must(vjp(kernel)).kernel, 3);
  run.set("x", {0, -1, 1}).set("bar_y", {1, 1, 1}).launch();
  EXPECT_EQ(run.get("bar_x"), (std::vector<double>{0, 0, 1}));
}

TEST(Vjp, ALoopWithoutATripAddsNothingToWhatItWouldHaveUsed) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 x: f64 read %1 n: i64 output y: f64 {
    %2 = constant 1 : f64  %3 = constant 0 : i64  %4 = constant 1 : i64  %5 = sqrt %0 : f64
    %13, %14 = while %2, %3 max 10 -> f64, i64 (%6, %7) { %8 = lt %7, %1 : bool yield %8 } do (%9, %10)
      { %11 = mul %9, %5 : f64 %12 = add %10, %4 : i64 yield %11, %12 }
    yield %13 })");
  Launch run(must(vjp(kernel)).kernel, 4);
  run.set("x", {0, -1, 4, 4}).set("n", {0, 0, 1, 3}).set("bar_y", {1, 1, 1, 1}).launch();
  EXPECT_EQ(run.get("bar_x"), (std::vector<double>{0, 0, .25, 3}));  // of x^(n/2): n/2 x^(n/2 - 1)
}

TEST(Vjp, AComponentThatNothingUsesAddsNothing) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 v: f64[2] output y: f64
    { %1 = sqrt %0 : f64[2] %2 = extract %1[1] : f64 yield %2 })");
  Launch run(must(vjp(kernel)).kernel, 1);
  run.set("v", {0, 4}).set("bar_y", {1}).launch();
  EXPECT_EQ(run.get("bar_v"), (std::vector<double>{0, .25}));
}

TEST(Vjp, EachComponentOfAMinimumHasItsOwnSide) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 v: f64[2] read %1 w: f64[2] output y: f64[2]
    { %2 = log %0 : f64[2] %3 = max %2, %1 : f64[2] yield %3 })");
  Launch run(must(vjp(kernel)).kernel, 1);
  run.set("v", {0, 4}).set("w", {5, 1}).set("bar_y", {1, 1}).launch();
  EXPECT_EQ(run.get("bar_v"), (std::vector<double>{0, .25}));
  EXPECT_EQ(run.get("bar_w"), (std::vector<double>{1, 0}));
}

// ---- loops

// (x, v) <- (x + dt v, v - dt w w x) as often as n says, at most `most` times.
Kernel oscillator(std::uint64_t most) {
  return parse(
      R"(kernel @oscillator real=f64 read %0 x: f64 read %1 v: f64 param %2 w: f64 read %3 n: i64 output y: f64 {
    %4 = constant 0 : i64  %5 = constant 1 : i64  %6 = constant 0x1p-7 : f64  %7 = mul %2, %2 : f64
    %21, %22, %23 = while %0, %1, %4 max )" +
      std::to_string(most) + R"( -> f64, f64, i64 (%8, %9, %10) {
      %11 = lt %10, %3 : bool  yield %11
    } do (%12, %13, %14) {
      %15 = mul %6, %13 : f64  %16 = add %12, %15 : f64
      %17 = mul %7, %12 : f64  %18 = mul %6, %17 : f64  %19 = sub %13, %18 : f64
      %20 = add %14, %5 : i64  yield %16, %19, %20 }
    yield %21 })");
}

// The oscillator's derivatives by x and v, forwards by hand.
struct Slopes {
  double x = 1, v = 0, by_x = 1, by_v = 0, v_by_x = 0, v_by_v = 1, by_w = 0, v_by_w = 0;
  void step(double w) {
    const double h = 0x1p-7;
    const Slopes s = *this;
    x = s.x + h * s.v, v = s.v - h * w * w * s.x;
    by_x = s.by_x + h * s.v_by_x, v_by_x = s.v_by_x - h * w * w * s.by_x;
    by_v = s.by_v + h * s.v_by_v, v_by_v = s.v_by_v - h * w * w * s.by_v;
    by_w = s.by_w + h * s.v_by_w, v_by_w = s.v_by_w - h * (w * w * s.by_w + 2 * w * s.x);
  }
};

TEST(Loops, AreGoneThroughBackwardsWhateverTheirTrips) {
  for (const std::uint64_t most : {1, 2, 3, 7, 64, 1000}) {
    const Derivative made = must(vjp(oscillator(most)));
    std::vector<double> trips;
    for (const std::uint64_t n : {0, 1, 2, 3, 5, 8, 63, 64, 999, 5000})
      trips.push_back(static_cast<double>(n));
    const auto samples = static_cast<std::int64_t>(trips.size());
    Launch run(made.kernel, samples);
    const std::vector<double> ones(trips.size(), 1.0), zeros(trips.size(), 0.0);
    run.set("x", ones).set("v", zeros).set("w", {1.5}).set("n", trips).set("bar_y", ones).launch();
    for (std::size_t i = 0; i < trips.size(); ++i) {
      Slopes wanted;
      for (std::uint64_t k = 0; k < std::min(most, static_cast<std::uint64_t>(trips[i])); ++k)
        wanted.step(1.5);
      const double size = 1e-12 * (1 + std::abs(wanted.by_w));
      EXPECT_NEAR(run.get("bar_x")[i], wanted.by_x, size) << most << " at most, " << trips[i];
      EXPECT_NEAR(run.get("bar_v")[i], wanted.by_v, size) << most << " at most, " << trips[i];
      EXPECT_NEAR(run.get("bar_w")[i], wanted.by_w, size) << most << " at most, " << trips[i];
    }
  }
}

std::size_t ops_in(const Region& region) {
  std::size_t count = region.ops.size();
  for (const Op& op : region.ops) {
    for (const Region& nested : op.regions) count += ops_in(nested);
  }
  return count;
}

TEST(Loops, AMillionTripsHaveAKernelOfAFewHundredOps) {
  EXPECT_LT(ops_in(must(vjp(oscillator(1'000'000))).kernel.body), 400U);
}

TEST(Loops, NestedOnesAreGoneThroughBackwards) {
  // y = x, then for each i below n: y <- y times x as often as i says: x^(1 + n (n - 1) / 2).
  const Kernel kernel = parse(R"(kernel @nested real=f64 read %0 x: f64 read %1 n: i64 output y: f64 {
    %2 = constant 0 : i64  %3 = constant 1 : i64
    %19, %20 = while %0, %2 max 20 -> f64, i64 (%4, %5) { %6 = lt %5, %1 : bool yield %6 } do (%7, %8) {
      %16, %17 = while %7, %2 max 50 -> f64, i64 (%9, %10) { %11 = lt %10, %8 : bool yield %11 } do (%12, %13) {
        %14 = mul %12, %0 : f64  %15 = add %13, %3 : i64  yield %14, %15 }
      %18 = add %8, %3 : i64
      yield %16, %18 }
    yield %19 })");
  Launch run(must(vjp(kernel)).kernel, 4);
  run.set("x", {1.125, 1.125, 1.125, .9}).set("n", {0, 1, 6, 12}).set("bar_y", {1, 1, 1, 1}).launch();
  const std::vector<double> x = {1.125, 1.125, 1.125, .9}, power = {1, 1, 16, 67};
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(run.get("bar_x")[i], power[i] * std::pow(x[i], power[i] - 1), 1e-12 * power[i]);
}

TEST(Loops, OneThatCarriesTooMuchIsRefusedByItsPlace) {
  std::string initial, types;
  for (int i = 0; i < 9; ++i) {
    initial += i == 0 ? "%0" : ", %0";
    types += i == 0 ? "f64[64]" : ", f64[64]";
  }
  std::string first, second, results;
  for (int i = 0; i < 9; ++i) {
    first += (i == 0 ? "%" : ", %") + std::to_string(1 + i);
    second += (i == 0 ? "%" : ", %") + std::to_string(11 + i);
    results += (i == 0 ? "%" : ", %") + std::to_string(20 + i);
  }
  const Kernel kernel = parse("kernel @wide real=f64 read %0 v: f64[64] output y: f64[64] { " + results +
                              " = while " + initial + " max 100 -> " + types + " (" + first +
                              ") { %10 = constant true : bool yield %10 } do (" + second + ") { yield " +
                              second + " } yield %20 }");
  const Status status = vjp(kernel).status();
  EXPECT_EQ(status.reason(), Reason::kernel_limit);
  EXPECT_THAT(status.message(), HasSubstr("576 components"));
}

// ---- rules of their own

TEST(Primitives, HaveTheDerivativeThatTheirRuleSays) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 x: f64 read %1 i: i64 output y: f64 {
    %9 = primitive %0, %1 -> f64 (%2: f64, %3: i64) { %4 = floor %2 : f64 yield %4 }
      vjp (%5: f64, %6: i64, %7: f64) { %8 = mul %7, %5 : f64 yield %8 }
    %10 = mul %9, %9 : f64  yield %10 })");
  EXPECT_EQ(to_text(parse(to_text(kernel))), to_text(kernel));
  Launch run(must(vjp(kernel)).kernel, 1);
  run.set("x", {2.5}).set("bar_y", {1}).launch();
  EXPECT_EQ(run.get("bar_x"), std::vector<double>{2 * 2 * 2.5});
  const Status status = jvp(kernel).status();
  EXPECT_EQ(status.reason(), Reason::bad_value);
  EXPECT_THAT(status.message(), HasSubstr("no jvp rule"));
}

TEST(Primitives, WithoutRulesHaveTheDerivativeOfTheirText) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 x: f64 output y: f64 {
    %3 = primitive %0 -> f64 (%1: f64) { %2 = mul %1, %1 : f64 yield %2 }  yield %3 })");
  Launch run(must(vjp(kernel)).kernel, 1);
  run.set("x", {3}).set("bar_y", {1}).launch();
  EXPECT_EQ(run.get("bar_x"), std::vector<double>{6});
}

TEST(Primitives, SeeNothingFromOutside) {
  EXPECT_FALSE(from_text(R"(kernel @k real=f64 read %0 x: f64 output y: f64 {
    %3 = primitive %0 -> f64 (%1: f64) { %2 = mul %1, %0 : f64 yield %2 }  yield %3 })")
                   .ok());
  EXPECT_FALSE(from_text(R"(kernel @k real=f64 read %0 i: i64 table t: f64 output y: f64 {
    %3 = primitive %0 -> f64 (%1: i64) { %2 = gather @t[%1] : f64 yield %2 }  yield %3 })")
                   .ok());
  EXPECT_FALSE(from_text(R"(kernel @k real=f64 read %0 x: f64 output y: f64 {
    %4 = primitive %0 -> f64 (%1: f64) { yield %1 } vjp (%2: f64, %3: f64) { yield }  yield %4 })")
                   .ok());
}

// ---- derivatives of derivatives

TEST(SecondDerivatives, AreJvpsOfVjps) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 x: f64 read %1 z: f64 output y: f64
    { %2 = mul %0, %0 : f64 %3 = mul %2, %0 : f64 %4 = sin %1 : f64 %5 = mul %3, %4 : f64 yield %5 })");
  const Derivative first = must(vjp(kernel));
  Options by_x;
  by_x.wrt = {"x"};
  const Derivative second = must(jvp(first.kernel, by_x));
  Launch run(second.kernel, 1);
  run.set("x", {2}).set("z", {.5}).set("bar_y", {1}).set("dot_x", {1}).launch();
  EXPECT_DOUBLE_EQ(run.get("dot_bar_x")[0], 12 * std::sin(.5));  // of x^3 sin z
  EXPECT_DOUBLE_EQ(run.get("dot_bar_z")[0], 12 * std::cos(.5));
}

TEST(SecondDerivatives, AnAdjointThatIsZeroByChanceHasItsOwnDerivative) {
  // y = u^2 with u = select(c, x k, 1): at x = 0 the adjoint of u is 0, and its change is 2 k dx.
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 x: f64 read %1 c: bool output y: f64
    { %2 = constant 3 : f64 %3 = constant 1 : f64 %4 = mul %0, %2 : f64 %5 = select %1, %4, %3 : f64
      %6 = mul %5, %5 : f64 yield %6 })");
  Options by_x;
  by_x.wrt = {"x"};
  const Derivative second = must(jvp(must(vjp(kernel)).kernel, by_x));
  Launch run(second.kernel, 2);
  run.set("x", {0, 0}).set("c", {1, 0}).set("bar_y", {1, 1}).set("dot_x", {1, 1}).launch();
  EXPECT_EQ(run.get("dot_bar_x"), (std::vector<double>{18, 0}));
}

// ---- refusals

Status refusal_of(const std::string& text, const Options& options = {}) {
  return vjp(parse(text), options).status();
}

TEST(Vjp, AnUnknownNameIsRefusedWithTheKnownOnes) {
  Options options;
  options.wrt = {"q"};
  const Status status = refusal_of(every_role, options);
  EXPECT_EQ(status.reason(), Reason::unknown_name);
  EXPECT_THAT(status.message(), HasSubstr("'q'"));
  EXPECT_THAT(status.message(), HasSubstr("'x', 's', 'p', 't'"));
}

TEST(Vjp, IntegersMasksAndOutputsAreNothingToDifferentiateBy) {
  for (const char* name : {"i", "done", "y", "h"}) {
    Options options;
    options.wrt = {name};
    const Status status = refusal_of(every_role, options);
    EXPECT_EQ(status.reason(), Reason::bad_value);
    EXPECT_THAT(status.message(), HasSubstr("'" + std::string(name) + "'"));
  }
}

TEST(Vjp, AMaximumOfAllSamplesIsRefused) {
  const Status status = refusal_of("kernel @k real=f64 read %0 x: f64 reduce max m: f64 { yield %0 }");
  EXPECT_EQ(status.reason(), Reason::bad_value);
  EXPECT_THAT(status.message(), HasSubstr("'m'"));
  EXPECT_THAT(status.message(), HasSubstr("eagle.reduce"));
}

constexpr auto extremes = R"(kernel @k real=f64 read %0 x: f64 terminated %1 done: bool reduce max m: f64
    reduce min l: f64 { %2 = sqrt %0 : f64 %3 = mul %0, %0 : f64 yield %1, %2, %3 })";

TEST(Vjp, AnExtremeGivesItsAdjointToTheSampleThatItIsOf) {
  Options options;
  options.extremes = true;
  const Derivative made = must(vjp(parse(extremes), options));
  Launch run(made.kernel, 4);
  // The square root of 0 has an infinite slope, which is nobody's business where sample 2 has won.
  run.set("x", {0, 1, 4, 9}).set("done", {0, 0, 0, 1}).set("bar_m", {8}).set("bar_l", {100});
  run.set("first_m", {2}).set("first_l", {-1}).launch();
  EXPECT_EQ(run.get("bar_x"), (std::vector<double>{0, 0, 2, 0}));
}

TEST(Terms, AreWhatSamplesGiveToExtremesAndNothingWhereTheyAreStopped) {
  const Derivative made = must(terms(parse(extremes)));
  Launch run(made.kernel, 4);
  run.set("x", {0, 1, 4, 9}).set("done", {0, 0, 0, 1}).launch();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(run.get("term_m"), (std::vector<double>{0, 1, 2, -infinity}));
  EXPECT_EQ(run.get("term_l"), (std::vector<double>{0, 1, 16, infinity}));
}

TEST(Vjp, AKernelOfIntegersIsRefused) {
  EXPECT_EQ(refusal_of("kernel @k real=f64 read %0 x: f64 output y: i64 { %1 = convert %0 : i64 yield %1 }")
                .reason(),
            Reason::bad_value);
  EXPECT_EQ(refusal_of("kernel @k real=f64 read %0 x: i64 output y: f64 { %1 = convert %0 : f64 yield %1 }")
                .reason(),
            Reason::bad_value);
}

}  // namespace
}  // namespace eagle::kernel::diff
