// Kernels for tests of launches that nobody waits for yet.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "eagle/client/array.h"
#include "eagle/client/kernel_builder.h"
#include "eagle/client/run.h"

namespace eagle::testing {

constexpr const char* gpu = "cuda:0";
constexpr std::int64_t for_ever = std::int64_t{1} << 40;

inline std::shared_ptr<const Kernel> finished(KernelBuilder& builder) {
  StatusOr<Kernel> kernel = builder.finish();
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return std::make_shared<const Kernel>(*std::move(kernel));
}

// y = a x + b
inline const std::shared_ptr<const Kernel>& affine() {
  static const auto kernel = [] {
    KernelBuilder k("affine");
    const auto x = k.scalar("x");
    const auto a = k.param("a");
    const auto b = k.param("b");
    k.output("y", k.add(k.mul(a, x), b));
    return finished(k);
  }();
  return kernel;
}

// A loop that only a stop ends.
inline const std::shared_ptr<const Kernel>& spinning() {
  static const auto kernel = [] {
    KernelBuilder k("spinning");
    const auto x = k.scalar("x");
    auto carried = k.begin_while({k.integer(0)}, static_cast<std::uint64_t>(for_ever));
    carried = k.while_condition(k.ge(carried[0], k.integer(0)));
    carried = k.end_while({k.add(carried[0], k.integer(1))});
    k.output("y", k.add(x, k.convert(carried[0], kernel::Scalar::f64)));
    return finished(k);
  }();
  return kernel;
}

inline BoundPlan line(const Array<double>& x, const Array<double>& y, double a = 1.0, double b = 1.0) {
  return {affine(), {{"x", x}, {"y", y}, {"a", a}, {"b", b}}};
}
inline BoundPlan spin(const Array<double>& x) { return {spinning(), {{"x", x}, {"y", x}}}; }

}  // namespace eagle::testing
