// Whole kernels with known answers; the numbers are those of the acceptance table in docs/manual/kernels.md.
// (The oscillator and the contact spring are in interpret_test.cpp.)
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/kernel/algebra.h"
#include "engine/kernel/builder.h"
#include "engine/kernel/interpret.h"

namespace eagle::kernel {
namespace {

using Value = KernelBuilder::Value;

constexpr Type real{Scalar::f64};
constexpr Type vector3{Scalar::f64, 1, {3, 1}};

Kernel finished(KernelBuilder& b) {
  StatusOr<Kernel> kernel = b.finish();
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return kernel.ok() ? *kernel : Kernel{};
}

template <typename T>
InterpreterPlane plane(std::vector<T>& values, std::size_t width = 1) {
  const std::size_t length = values.size() / width;
  return {reinterpret_cast<std::byte*>(values.data()), static_cast<std::int64_t>(length * sizeof(T)),
          static_cast<std::int64_t>(length)};
}

TEST(Acceptance, KineticEnergy) {
  KernelBuilder b("energy");
  const auto v = b.vector("v", 3);
  b.output("e", b.div(algebra::dot(b, v, v), b.real(2)));
  const Kernel kernel = finished(b);
  // (1,0,0), (2,1,0), (3,0,1), (4,1,1), component by component.
  std::vector<double> pv{1, 2, 3, 4, 0, 1, 0, 1, 0, 0, 1, 1}, e(4);
  interpret_launch(kernel, std::vector{plane(pv, 3), plane(e)}, 4, 1);
  EXPECT_EQ(e, (std::vector<double>{.5, 2.5, 5, 9}));
}

TEST(Acceptance, GatherFromATable) {
  KernelBuilder b("gather");
  b.table("t", real);
  b.declare_output("y", real);
  const auto index =
      b.op(Opcode::modulo, {b.add(b.mul(b.integer(7), b.sample_index()), b.integer(3)), b.integer(8)});
  b.commit("y", b.gather("t", {index}));
  const Kernel kernel = finished(b);
  std::vector<double> t{0, 3, 6, 9, 12, 15, 18, 21}, y(8);
  const auto result = interpret_launch(kernel, std::vector{plane(t), plane(y)}, 8, 1, {0, 8, 0});
  EXPECT_EQ(y, (std::vector<double>{9, 6, 3, 0, 21, 18, 15, 12}));
  EXPECT_EQ(result.clamped, 0);
}

TEST(Acceptance, RunningMaximum) {
  KernelBuilder b("running_max");
  const auto n = b.index("n");
  b.table("t", real);
  b.declare_output("y", real);
  const auto first = b.gather("t", {b.integer(0)});
  const auto carried = b.begin_while({b.integer(1), first}, 1000);
  const auto body = b.while_condition(b.lt(carried[0], n));
  const auto larger = b.op(Opcode::max, {body[1], b.gather("t", {body[0]})});
  const auto result = b.end_while({b.add(body[0], b.integer(1)), larger});
  b.commit("y", result[1]);
  const Kernel kernel = finished(b);
  std::vector<std::int64_t> pn{5, 3, 1};
  std::vector<double> t{3, 7, 2, 9, 4}, y(3);
  const auto counts = interpret_launch(kernel, std::vector{plane(pn), plane(t), plane(y)}, 3, 1);
  EXPECT_EQ(y, (std::vector<double>{9, 7, 3}));
  EXPECT_EQ(counts.clamped, 0);
}

// The acceleration of a point mass and the second zonal harmonic:
//   a = -mu r/|r|^3 + 3/2 J2 mu R^2/|r|^5 r (5 z^2/|r|^2 - (1, 1, 3))
Value j2_acceleration(KernelBuilder& b, Value r, double mu, double j2, double radius) {
  const auto z = b.extract(r, 2);
  const auto squared = algebra::dot(b, r, r);
  const auto length = algebra::norm(b, r);
  const auto cubed = b.mul(squared, length);
  const auto central = algebra::scale(b, b.neg(b.div(b.real(mu), cubed)), r);
  const auto strength = b.div(b.real(1.5 * j2 * mu * radius * radius), b.mul(cubed, squared));
  const auto tilt = b.div(b.mul(b.real(5), b.mul(z, z)), squared);
  const auto in_plane = b.sub(tilt, b.real(1));
  const auto weights = b.compose({in_plane, in_plane, b.sub(tilt, b.real(3))}, vector3);
  return b.add(central, algebra::scale(b, strength, b.mul(weights, r)));
}

TEST(Acceptance, J2TwoBodyByRungeKutta) {
  KernelBuilder b("j2");
  const auto r = b.state("r", vector3);
  const auto v = b.state("v", vector3);
  const auto dt = b.param("dt");
  const auto half = b.mul(dt, b.real(.5));
  const auto acceleration = [&](Value at) { return j2_acceleration(b, at, 1, 1e-3, .9); };
  const auto ahead = [&](Value from, Value by, Value slope) {
    return b.add(from, algebra::scale(b, by, slope));
  };
  const Value r1 = v, v1 = acceleration(r);
  const Value r2 = ahead(v, half, v1), v2 = acceleration(ahead(r, half, r1));
  const Value r3 = ahead(v, half, v2), v3 = acceleration(ahead(r, half, r2));
  const Value r4 = ahead(v, dt, v3), v4 = acceleration(ahead(r, dt, r3));
  const auto mean = [&](Value k1, Value k2, Value k3, Value k4) {
    const auto middle = algebra::scale(b, b.real(2), b.add(k2, k3));
    return b.add(b.add(k1, middle), k4);
  };
  const auto sixth = b.div(dt, b.real(6));
  b.commit("r", ahead(r, sixth, mean(r1, r2, r3, r4)));
  b.commit("v", ahead(v, sixth, mean(v1, v2, v3, v4)));
  const Kernel kernel = finished(b);

  std::vector<double> pr{1, 0, 0}, pv{0, std::sqrt(3.0) / 2, .5}, pdt{.01};
  EXPECT_EQ(interpret_launch(kernel, std::vector{plane(pr, 3), plane(pv, 3), plane(pdt)}, 1, 1000).steps,
            1000);
  const double expected_r[] = {-0.8259284489702615, -0.48330076485771967, -0.28370810224984094};
  const double expected_v[] = {0.5620764682774001, -0.7196427456716374, -0.4120370202146245};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(pr[i], expected_r[i], 1e-12);
    EXPECT_NEAR(pv[i], expected_v[i], 1e-12);
  }
}

}  // namespace
}  // namespace eagle::kernel
