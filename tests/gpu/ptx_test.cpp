// What the emitter makes for GPUs: it keeps the rules of ptx_rules.h, and ptxas takes it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "engine/codegen/ptx.h"
#include "engine/kernel/builder.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/scalar_math.h"
#include "engine/kernel/text.h"
#include "engine/kernel/typing.h"
#include "tests/gpu/ptxas.h"

namespace eagle::gpu_tests {
namespace {

using kernel::KernelBuilder;
using kernel::Scalar;

class Ptx : public testing::TestWithParam<const char*> {
protected:
  // The compiler checks the rules itself, and fails where one is broken.
  void expect_assembles(const kernel::Kernel& kernel) {
    const auto ptx = codegen::ptx_of(compiler_, kernel, GetParam());
    ASSERT_TRUE(ptx.ok()) << ptx.status().to_string() << "\n" << kernel::to_text(kernel);
    const Status status = assemble(*ptx, GetParam());
    ASSERT_TRUE(status.ok()) << status.message() << "\n" << kernel::to_text(kernel);
  }
  codegen::Compiler compiler_;
};

TEST_P(Ptx, OfRandomKernelsIsAssembled) {
  constexpr std::uint64_t first_seed = 81'173;
  const std::uint64_t count = std::getenv("EAGLE_LONG") == nullptr ? 8 : 2'000;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_assembles(kernel::random_kernel(seed));
    if (HasFatalFailure()) return;
  }
}

// In double and in single precision, each of them in one kernel.
TEST_P(Ptx, OfEveryMathFunctionIsAssembled) {
  int functions = 0;
  KernelBuilder b("functions");
  std::vector<KernelBuilder::Value> doubles, singles;
  for (const char* name : {"a", "b", "c"}) doubles.push_back(b.scalar(name));
  for (const auto& value : doubles) singles.push_back(b.convert(value, Scalar::f32));
  for (const kernel::Rule& rule : kernel::rules()) {
    if (!kernel::is_math(rule.code)) continue;
    ++functions;
    const auto first = [&](const auto& all) {
      return std::vector<KernelBuilder::Value>(all.begin(), all.begin() + rule.operands);
    };
    const std::string name(rule.name);
    b.output("double_" + name, b.convert(b.op(rule.code, first(doubles)), Scalar::f64));
    b.output("single_" + name, b.convert(b.op(rule.code, first(singles)), Scalar::f64));
  }
  EXPECT_EQ(functions, 42);
  const auto kernel = b.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  expect_assembles(*kernel);
}

// More than 4,096 bytes of parameters need a newer PTX.
TEST_P(Ptx, OfManyArgumentsIsAssembled) {
  KernelBuilder b("many");
  std::vector<KernelBuilder::Value> all;
  for (int i = 0; i < 200; ++i) all.push_back(b.scalar("x" + std::to_string(i)));
  auto sum = b.real(0);
  for (const auto& value : all) sum = b.add(sum, value);
  b.output("y", sum);
  const kernel::Kernel kernel = *b.finish();
  EXPECT_NE(codegen::ptx_of(compiler_, kernel, GetParam())->find(".version 8.1"), std::string::npos);
  expect_assembles(kernel);
}

INSTANTIATE_TEST_SUITE_P(Arch, Ptx, testing::Values("sm_75", "sm_80", "sm_90"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(PtxOfTooManyArguments, IsRefusedWithBothNumbers) {
  KernelBuilder b("very_many");
  b.output("y", b.scalar("x"));
  kernel::Kernel kernel = *b.finish();
  for (int i = 0; i < 1'500; ++i) {  // more than a builder takes
    kernel.arguments.push_back(kernel.arguments.back());
    kernel.arguments.back().name = "y" + std::to_string(i);
    kernel.body.yields.push_back(kernel.body.yields.back());
  }
  codegen::Compiler compiler;
  const auto ptx = codegen::ptx_of(compiler, kernel, "sm_80");
  ASSERT_FALSE(ptx.ok());
  EXPECT_EQ(ptx.status().reason(), Reason::compile_failed);
  EXPECT_NE(ptx.status().message().find("expected at most 32764"), std::string::npos)
      << ptx.status().message();
}

TEST(PtxAssembler, RefusesWhatIsNotPtx) { EXPECT_FALSE(assemble("not PTX at all", "sm_80").ok()); }

}  // namespace
}  // namespace eagle::gpu_tests
