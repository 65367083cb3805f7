#include "engine/kernel/interpret.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "engine/kernel/builder.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/random_planes.h"
#include "engine/kernel/text.h"

namespace eagle::kernel {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t i64_min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t i64_max = std::numeric_limits<std::int64_t>::max();

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }
std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::uint64_t bits(bool value) { return value ? 1 : 0; }

const char* scalar_text(double) { return "f64"; }
const char* scalar_text(float) { return "f32"; }
const char* scalar_text(std::int64_t) { return "i64"; }
const char* scalar_text(bool) { return "bool"; }

template <typename T>
bool same(std::uint64_t found, T expected) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(expected)) {
      return sizeof(T) == 8 ? std::isnan(std::bit_cast<double>(found))
                            : std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(found)));
    }
  }
  return found == bits(expected);
}

Kernel parse(const std::string& text) {
  StatusOr<Kernel> kernel = from_text(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string() << "\n" << text;
  return kernel.ok() ? *kernel : Kernel{};
}

// The result of one op on values of one type.
template <typename R, typename... Ts>
void expect_op(const char* op, R expected, Ts... operands) {
  const bool f32 = (std::is_same_v<Ts, float> || ...) || std::is_same_v<R, float>;
  std::string text = "kernel @k real=" + std::string(f32 ? "f32" : "f64") + " ";
  std::string list;
  std::vector<Bits> entry;
  int id = 0;
  const auto add = [&](auto operand) {
    text += "read %" + std::to_string(id) + " a" + std::to_string(id) + ": " + scalar_text(operand) + " ";
    list += (id == 0 ? "%" : ", %") + std::to_string(id);
    entry.push_back({bits(operand)});
    ++id;
  };
  (add(operands), ...);
  text += "output y: " + std::string(scalar_text(expected)) + " { %" + std::to_string(id) + " = " + op + " " +
          list + " : " + scalar_text(expected) + " yield %" + std::to_string(id) + " }";
  const auto result = interpret(parse(text), entry);
  ASSERT_EQ(result.size(), 1u);
  EXPECT_TRUE(same(result[0][0], expected)) << text << " gave " << std::hex << result[0][0];
}

TEST(Interpret, IntegersWrap) {
  expect_op("add", i64_min, i64_max, std::int64_t{1});
  expect_op("sub", i64_max, i64_min, std::int64_t{1});
  expect_op("mul", std::int64_t{-2}, i64_max, std::int64_t{2});
  expect_op("neg", i64_min, i64_min);
  expect_op("abs", i64_min, i64_min);
  expect_op("abs", std::int64_t{7}, std::int64_t{-7});
}

TEST(Interpret, RealsAreIeee) {
  expect_op("add", 0.1 + 0.2, 0.1, 0.2);
  expect_op("div", inf, 1.0, 0.0);
  expect_op("div", nan_value, 0.0, 0.0);
  expect_op("neg", -0.0, 0.0);
  expect_op("abs", 0.0, -0.0);
  expect_op("sqrt", 1.4142135623730951, 2.0);  // IEEE's correctly rounded root of 2
  expect_op("sqrt", 1.4142135f, 2.0f);
  expect_op("sqrt", nan_value, -1.0);
  expect_op("sqrt", -0.0, -0.0);
  expect_op("mul", inf, DBL_MAX, 2.0);
  expect_op("mul", 0x1p-1074, 0x1p-1073, 0.5);       // subnormals are kept
  expect_op("add", 16777216.0f, 16777216.0f, 1.0f);  // f32 rounds to 24 bits, a tie to even
}

TEST(Interpret, MinAndMaxIgnoreANanAndKeepTheFirstOfATie) {
  expect_op("min", 1.0, 1.0, 2.0);
  expect_op("min", 1.0, 2.0, 1.0);
  expect_op("min", 1.0, nan_value, 1.0);
  expect_op("min", 1.0, 1.0, nan_value);
  expect_op("min", nan_value, nan_value, nan_value);
  expect_op("min", 0.0, 0.0, -0.0);
  expect_op("min", -0.0, -0.0, 0.0);
  expect_op("max", 2.0, 1.0, 2.0);
  expect_op("max", 2.0, 2.0, 1.0);
  expect_op("max", 1.0f, std::nanf(""), 1.0f);
  expect_op("max", -0.0, -0.0, 0.0);
  expect_op("min", i64_min, i64_min, i64_max);
  expect_op("max", i64_max, i64_min, i64_max);
}

TEST(Interpret, ComparisonsWithANanAreFalseExceptNe) {
  for (const char* op : {"eq", "lt", "le", "gt", "ge"}) {
    expect_op(op, false, nan_value, 1.0);
    expect_op(op, false, nan_value, nan_value);
  }
  expect_op("ne", true, nan_value, nan_value);
  expect_op("eq", true, 0.0, -0.0);
  expect_op("lt", true, i64_min, i64_max);
  expect_op("ge", true, 2.0, 2.0);
  expect_op("le", false, 2.0, 1.0);
  expect_op("gt", true, 2.0, 1.0);
  expect_op("ne", true, true, false);
}

TEST(Interpret, Logic) {
  for (const bool a : {false, true}) {
    expect_op("not", !a, a);
    for (const bool b : {false, true}) {
      expect_op("and", a && b, a, b);
      expect_op("or", a || b, a, b);
      expect_op("xor", a != b, a, b);
    }
  }
  expect_op("select", 1.0, true, 1.0, nan_value);
  expect_op("select", 2.0, false, inf, 2.0);
}

TEST(Interpret, RealToIntegerTruncatesAndSaturates) {
  expect_op("convert", std::int64_t{2}, 2.9);
  expect_op("convert", std::int64_t{-2}, -2.9);
  expect_op("convert", std::int64_t{0}, nan_value);
  expect_op("convert", i64_max, 0x1p63);
  expect_op("convert", i64_max, inf);
  expect_op("convert", std::int64_t{0x7ffffffffffffc00}, 0x1.fffffffffffffp62);  // the double below 2^63
  expect_op("convert", i64_min, -0x1p63);
  expect_op("convert", i64_min, -inf);
  expect_op("convert", i64_max, 1e30f);
}

// A value through another scalar and back: i32 is never an argument's type.
template <typename T>
void expect_through_i32(T value, std::int64_t expected) {
  const std::string scalar = scalar_text(value);
  const Kernel kernel =
      parse("kernel @k real=" + std::string(scalar == "f32" ? "f32" : "f64") + " read %0 x: " + scalar +
            " output y: i64 { %1 = convert %0 : i32 %2 = convert %1 : i64 yield %2 }");
  EXPECT_EQ(interpret(kernel, std::vector<Bits>{{bits(value)}})[0][0], bits(expected)) << value;
}

TEST(Interpret, NarrowIntegersSaturateFromRealsAndWrapFromIntegers) {
  expect_through_i32(2147483647.9, 2147483647);
  expect_through_i32(2147483648.0, 2147483647);
  expect_through_i32(-2147483648.9, -2147483648);
  expect_through_i32(-1e300, -2147483648);
  expect_through_i32(nan_value, 0);
  expect_through_i32(3e9f, 2147483647);
  expect_through_i32(std::int64_t{0x1'8000'0000}, -2147483648);
  expect_through_i32(std::int64_t{-1}, -1);
  expect_through_i32(true, 1);
}

TEST(Interpret, I32Wraps) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 x: f64 output y: i64 {
    %1 = constant 2147483647 : i32  %2 = constant -2147483648 : i32
    %3 = mul %1, %1 : i32  %4 = sub %2, %3 : i32  %5 = abs %4 : i32  %6 = convert %5 : i64  yield %6 })");
  // (2^31-1)^2 is 1 modulo 2^32; -2^31 - 1 wraps to 2^31-1.
  EXPECT_EQ(interpret(kernel, std::vector<Bits>{{0}})[0][0], 2147483647u);
}

TEST(Interpret, ConversionsRoundToNearestOnce) {
  expect_op("convert", 0x1p53, std::int64_t{9007199254740993});  // 2^53 + 1 is a tie, to even
  // 2^60 + 2^36 + 1 lies above the middle of two floats; by way of a double it would become a tie.
  expect_op("convert", 0x1.000002p60f, std::int64_t{(1LL << 60) + (1LL << 36) + 1});
  expect_op("convert", 1.0, true);
  expect_op("convert", std::int64_t{1}, true);
}

TEST(Interpret, F64ToF32RoundsToNearest) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 x: f64 output y: f64 {
    %1 = convert %0 : f32 %2 = convert %1 : f64 yield %2 })");
  const auto through = [&](double value) {
    return std::bit_cast<double>(interpret(kernel, std::vector<Bits>{{bits(value)}})[0][0]);
  };
  EXPECT_EQ(through(0.1), 0.10000000149011612);  // the float nearest to 0.1
  EXPECT_EQ(through(1e300), inf);
  EXPECT_EQ(through(0x1p-149), 0x1p-149);
  EXPECT_TRUE(std::isnan(through(nan_value)));
}

TEST(Interpret, ToBoolIsNotZero) {
  expect_op("convert", true, nan_value);
  expect_op("convert", false, -0.0);
  expect_op("convert", true, 0x1p-1074);
  expect_op("convert", true, std::int64_t{256});
}

TEST(Interpret, VectorsGoComponentByComponent) {
  const Kernel kernel =
      parse(R"(kernel @k real=f64 read %0 a: f64[2,2] read %1 b: f64[2,2] read %2 c: bool output y: f64[2,2] {
    %3 = mul %0, %1 : f64[2,2]  %4 = select %2, %3, %0 : f64[2,2]  yield %4 })");
  const Bits a = {bits(1.0), bits(2.0), bits(3.0), bits(4.0)};
  const Bits b = {bits(5.0), bits(6.0), bits(7.0), bits(8.0)};
  EXPECT_EQ(interpret(kernel, std::vector<Bits>{a, b, {1}})[0],
            (Bits{bits(5.0), bits(12.0), bits(21.0), bits(32.0)}));
  EXPECT_EQ(interpret(kernel, std::vector<Bits>{a, b, {0}})[0], a);
}

TEST(Interpret, OnlyTheTakenSideRuns) {
  const Kernel kernel = parse(R"(kernel @k real=f64 read %0 c: bool read %1 d: bool output y: f64 {
    %2 = constant 1.0 : f64
    %6 = if %0 -> f64 {
      %5 = if %1 -> f64 { %3 = add %2, %2 : f64 yield %3 } else { %4 = neg %2 : f64 yield %4 }
      yield %5
    } else { yield %2 }
    yield %6 })");
  const auto run = [&](bool c, bool d) {
    return std::bit_cast<double>(interpret(kernel, std::vector<Bits>{{bits(c)}, {bits(d)}})[0][0]);
  };
  EXPECT_EQ(run(true, true), 2.0);
  EXPECT_EQ(run(true, false), -1.0);
  EXPECT_EQ(run(false, true), 1.0);
}

#if defined(__SSE2__)
TEST(Interpret, KeepsSubnormalsWhateverTheCallerSet) {
  const unsigned before = _mm_getcsr();
  const unsigned flushing = before | 0x8040;  // flush to zero, denormals are zero
  _mm_setcsr(flushing);
  const Kernel kernel = parse(
      "kernel @k real=f64 read %0 a: f64 read %1 b: f64 output y: f64 { %2 = mul %0, %1 : f64 yield %2 }");
  const auto result = interpret(kernel, std::vector<Bits>{{bits(0x1p-1073)}, {bits(0.5)}});
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(result[0][0], 1u);
  EXPECT_EQ(after & 0x8040u, 0x8040u);
}
#endif

// ---- launches ----

template <typename T>
InterpreterPlane plane(std::vector<T>& values, std::size_t samples = 0) {
  return {reinterpret_cast<std::byte*>(values.data()), static_cast<std::int64_t>(samples * sizeof(T))};
}

TEST(Launch, Affine) {
  KernelBuilder b("affine");
  const auto a = b.param("a");
  const auto c = b.param("b");
  const auto x = b.scalar("x");
  b.output("y", b.add(b.mul(a, x), c));
  const StatusOr<Kernel> kernel = b.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  std::vector<double> pa{2}, pb{1}, px{0, 1, 2, 3, 4, 5, 6, 7}, py(8);
  const auto result =
      interpret_launch(*kernel, std::vector{plane(pa), plane(pb), plane(px), plane(py)}, 8, 1);
  EXPECT_EQ(py, (std::vector<double>{1, 3, 5, 7, 9, 11, 13, 15}));
  EXPECT_EQ(result.finished, 0);
  EXPECT_EQ(result.steps, 1);
}

// (x, v) <- (x + dt*v, v - dt*w*w*x) at once, t <- t + dt, finish when t >= t_end.
Kernel oscillator() {
  KernelBuilder b("oscillator");
  const Type real{Scalar::f64};
  const auto x = b.state("x", real);
  const auto v = b.state("v", real);
  const auto t = b.state("t", real);
  const auto omega = b.scalar("omega");
  const auto dt = b.param("dt");
  const auto t_end = b.param("t_end");
  b.terminated("done");
  b.commit("x", b.add(x, b.mul(dt, v)));
  b.commit("v", b.sub(v, b.mul(b.mul(b.mul(dt, omega), omega), x)));
  const auto later = b.add(t, dt);
  b.commit("t", later);
  b.commit("done", b.ge(later, t_end));
  StatusOr<Kernel> kernel = b.finish();
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return *kernel;
}

struct Oscillators {
  std::vector<double> x, v, t, omega, dt{1e-3}, t_end{1};
  std::vector<std::uint8_t> done;

  explicit Oscillators(std::vector<double> frequencies)
      : x(frequencies.size(), 1.0), v(x.size()), t(x.size()), omega(std::move(frequencies)), done(x.size()) {}
  InterpreterResult launch(std::int64_t max_steps) {
    const std::vector planes{plane(x),  plane(v),     plane(t),   plane(omega),
                             plane(dt), plane(t_end), plane(done)};
    return interpret_launch(oscillator(), planes, static_cast<std::int64_t>(x.size()), max_steps);
  }
};

// The numbers are those of the acceptance table in docs/manual/kernels.md.
TEST(Launch, OneOscillator) {
  Oscillators o({2.0});
  const auto result = o.launch(2000);
  EXPECT_EQ(result.steps, 1000);
  EXPECT_EQ(result.finished, 1);
  EXPECT_EQ(o.t[0], 1.0000000000000007);
  EXPECT_EQ(o.x[0], -0.41697753175791447);
  EXPECT_EQ(o.v[0], -1.8222378995667639);
  EXPECT_EQ(o.done[0], 1);
}

TEST(Launch, TheFirstOfAMillionOscillators) {
  const double step = 2.0 / 999'999;  // numpy.linspace(1, 3, 10**6)
  Oscillators o({1.0, 1.0 + step, 1.0 + 2 * step});
  EXPECT_EQ(o.launch(2000).finished, 3);
  EXPECT_EQ(o.x, (std::vector<double>{0.5405728050653854, 0.5405711223621569, 0.540569439656762}));
}

TEST(Launch, StepsAreTheSameHoweverTheyAreCut) {
  Oscillators whole({2.0});
  Oscillators cut({2.0});
  whole.launch(2000);
  EXPECT_EQ(cut.launch(999).finished, 0);
  const auto last = cut.launch(999);
  EXPECT_EQ(last.finished, 1);
  EXPECT_EQ(last.steps, 1);
  EXPECT_EQ(cut.x, whole.x);
  EXPECT_EQ(cut.launch(999).steps, 0);
}

TEST(Launch, AStoppedSampleIsNotTouchedAndNotCounted) {
  Oscillators o({2.0, 2.0});
  o.done[0] = 7;  // any value but 0 stops
  const auto result = o.launch(2000);
  EXPECT_EQ(result.finished, 1);
  EXPECT_EQ(o.x[0], 1.0);
  EXPECT_EQ(o.t[0], 0.0);
  EXPECT_EQ(o.done[0], 7);
}

// kernels.md: of x = .3, 0, -.1, -.2, -.8 only the last finishes.
TEST(Launch, ContactSpring) {
  KernelBuilder b("contact");
  const auto x = b.scalar("x");
  const auto v = b.state("v", Type{Scalar::f64});
  const auto k = b.param("k");
  const auto dt = b.param("dt");
  b.terminated("done");
  const auto gravity = b.real(-9.81);
  b.begin_if(b.lt(x, b.real(0)));
  const auto spring = b.sub(gravity, b.mul(k, x));
  b.otherwise({spring});
  const auto force = b.end_if({gravity})[0];
  b.commit("v", b.add(v, b.mul(dt, force)));
  b.commit("done", b.lt(x, b.real(-.5)));
  const StatusOr<Kernel> kernel = b.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  std::vector<double> px{.3, 0, -.1, -.2, -.8}, pv(5, -1), pk{1000}, pdt{.01};
  std::vector<std::uint8_t> done(5);
  const auto result =
      interpret_launch(*kernel, std::vector{plane(px), plane(pv), plane(pk), plane(pdt), plane(done)}, 5, 1);
  EXPECT_EQ(result.finished, 1);
  EXPECT_EQ(done, (std::vector<std::uint8_t>{0, 0, 0, 0, 1}));
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(pv[i], -1 + .01 * (px[i] < 0 ? -9.81 - 1000 * px[i] : -9.81));
}

TEST(Launch, WithoutAMaskEverySampleTakesEveryStep) {
  const Kernel kernel = parse(R"(kernel @count real=f64 mutable %0 n: i64 output y: i64
    { %1 = constant 1 : i64 %2 = add %0, %1 : i64 yield %2, %0 })");
  std::vector<std::int64_t> n{10, 20}, y(2);
  const auto result = interpret_launch(kernel, std::vector{plane(n), plane(y)}, 2, 5);
  EXPECT_EQ(n, (std::vector<std::int64_t>{15, 25}));
  EXPECT_EQ(y, (std::vector<std::int64_t>{14, 24}));
  EXPECT_EQ(result.steps, 5);
  EXPECT_EQ(interpret_launch(kernel, std::vector{plane(n), plane(y)}, 0, 5).steps, 0);
  EXPECT_EQ(interpret_launch(kernel, std::vector{plane(n), plane(y)}, 2, 0).steps, 0);
  EXPECT_EQ(n, (std::vector<std::int64_t>{15, 25}));
}

TEST(Launch, BooleansAreLoadedAsNotZeroAndStoredAsOne) {
  const Kernel kernel = parse(
      "kernel @k real=f64 read %0 b: bool read %1 c: bool output y: bool output z: i64 "
      "{ %2 = eq %0, %1 : bool %3 = convert %0 : i64 yield %0, %3 }");
  std::vector<std::uint8_t> b{2, 0, 255}, c{1, 0, 0}, y{9, 9, 9};
  std::vector<std::int64_t> z(3);
  interpret_launch(kernel, std::vector{plane(b), plane(c), plane(y), plane(z)}, 3, 1);
  EXPECT_EQ(y, (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(z, (std::vector<std::int64_t>{1, 0, 1}));
}

TEST(Launch, StateThatIsNotWrittenKeepsItsBytes) {
  const Kernel kernel = parse("kernel @k real=f64 mutable %0 b: bool { yield %0 }");
  std::vector<std::uint8_t> b{2};
  interpret_launch(kernel, std::vector{plane(b)}, 1, 3);
  EXPECT_EQ(b[0], 2);
}

TEST(Launch, ComponentsLieAStrideApart) {
  const Kernel kernel =
      parse("kernel @k real=f32 read %0 a: f32[2] output y: f32[2] { %1 = neg %0 : f32[2] yield %1 }");
  // Three samples of which two run; rows of four.
  std::vector<float> a{1, 2, 3, 0, 4, 5, 6, 0};
  std::vector<float> y(8, 9);
  interpret_launch(kernel, std::vector{plane(a, 4), plane(y, 4)}, 2, 1);
  EXPECT_EQ(y, (std::vector<float>{-1, -2, 9, 9, -4, -5, 9, 9}));
}

// A launch is nothing but the body with loads and stores around it.
TEST(Launch, OneStepOfARandomKernelIsItsBody) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Kernel kernel = random_kernel(seed);
    Random random(seed);
    Planes planes = random_planes(kernel, 1, random);
    if (kernel.terminated_argument() >= 0)
      *planes.addresses()[static_cast<std::size_t>(kernel.terminated_argument())] = std::byte{0};
    const auto interpreted = planes.interpreter_planes();
    // One component's bits after another's.
    const auto bits_at = [&](std::size_t argument) {
      const auto size = static_cast<std::size_t>(planes.element_bytes[argument]);
      Bits bits(static_cast<std::size_t>(kernel.arguments[argument].type.components()));
      for (std::size_t c = 0; c < bits.size(); ++c) {
        const auto offset = static_cast<std::int64_t>(c) * planes.strides[argument];
        std::memcpy(&bits[c], interpreted[argument].data + offset, size);
      }
      return bits;
    };
    std::vector<Bits> entry;
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
      if (has_entry_value(kernel.arguments[i].role)) entry.push_back(bits_at(i));
    }
    const InterpreterPosition position{7, 100, 3};
    const std::vector<Bits> expected = interpret(kernel, entry, interpreted, position);
    EXPECT_EQ(interpret_launch(kernel, interpreted, 1, 1, position).steps, 1);
    std::size_t commit = 0;
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
      if (!is_committed(kernel.arguments[i].role)) continue;
      EXPECT_EQ(bits_at(i), expected[commit++]) << "argument " << i << "\n" << to_text(kernel);
    }
  }
}

}  // namespace
}  // namespace eagle::kernel
