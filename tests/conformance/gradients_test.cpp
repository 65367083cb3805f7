// Derivatives of kernels, launched on every host: known values, and the interpreter's bits.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "eagle/client/derivative.h"
#include "eagle/client/kernel_builder.h"
#include "engine/kernel/interpret.h"
#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

class Gradients : public OnEveryHost {
protected:
  // A graph of one derivative, launched once.
  void launch(const Derivative& derivative, std::vector<std::pair<std::string, Argument>> arguments) const {
    Graph g(session(), {.name = "derivative", .recorded = false, .derivatives = true});
    const auto kernel = std::make_shared<const Kernel>(derivative.kernel);
    ASSERT_TRUE(g.add({kernel, std::move(arguments)}).ok());
    const Status built = g.build();
    ASSERT_TRUE(built.ok()) << built.to_string();
    const auto report = g.launch();
    ASSERT_TRUE(report.ok()) << report.status().to_string();
  }
};
EAGLE_ON_EVERY_HOST(Gradients);

// The square root of x by Newton's method, until it stands.
Kernel newton() {
  KernelBuilder b("newton");
  const auto x = b.scalar("x");
  const auto carried = b.begin_while({x, b.boolean(false)}, 60);
  const auto body = b.while_condition(b.op(kernel::Opcode::logical_not, {carried[1]}));
  const auto better = b.mul(b.real(0.5), b.add(body[0], b.div(x, body[0])));
  const auto change = b.op(kernel::Opcode::abs, {b.sub(better, body[0])});
  const auto stands = b.le(change, b.mul(b.real(1e-15), body[0]));
  const auto found = b.end_while({better, stands});
  b.output("y", found[0]);
  return *b.finish();
}

TEST_P(Gradients, OfALoopThatEndsInEachSampleByItselfAreTheInterpreters) {
  const Derivative back = must(vjp(newton()));
  constexpr std::int64_t n = 1001;
  const auto x = zeros<double>({n});
  const auto bar_y = full<double>(n, 1.0);
  const auto bar_x = zeros<double>({n});
  for (std::int64_t i = 0; i < n; ++i) x[i] = 0.01 * static_cast<double>(1 + i * i);
  launch(back, {{"x", x}, {"bar_y", bar_y}, {"bar_x", bar_x}});

  std::vector<double> in(x.span().begin(), x.span().end()), ones(n, 1.0), wanted(n);
  const auto plane = [](std::vector<double>& values) {
    return kernel::InterpreterPlane{reinterpret_cast<std::byte*>(values.data()), n * 8, n};
  };
  kernel::interpret_launch(back.kernel, std::vector{plane(in), plane(wanted), plane(ones)}, n, 1, {0, n, 0});
  for (std::int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(bar_x[i], wanted[static_cast<std::size_t>(i)]) << "sample " << i;
    ASSERT_NEAR(bar_x[i], 0.5 / std::sqrt(x[i]), 1e-10 / std::sqrt(x[i]));
  }
}

TEST_P(Gradients, OfALookUpAreAddedToTheElementThatWasRead) {
  KernelBuilder b("look_up");
  const auto i = b.index("i");
  b.table("t", {kernel::Scalar::f64});
  b.declare_output("y", {kernel::Scalar::f64});
  const auto found = b.gather("t", {i});
  b.commit("y", b.mul(found, found));
  const Derivative back = must(vjp(must(b.finish())));

  const auto index = zeros<std::int64_t>({5});
  const std::int64_t indices[] = {-7, 1, 1, 2, 99};
  std::copy(std::begin(indices), std::end(indices), index.span().begin());
  const auto t = zeros<double>({3});
  t[0] = 10, t[1] = 20, t[2] = 30;
  const auto bar_t = full<double>(3, 0.5);
  launch(back, {{"i", index}, {"t", t}, {"bar_y", full<double>(5, 1.0)}, {"bar_t", bar_t}});
  EXPECT_EQ(bar_t[0], 20.5);
  EXPECT_EQ(bar_t[1], 80.5);
  EXPECT_EQ(bar_t[2], 120.5);
}

}  // namespace
}  // namespace eagle::conformance
