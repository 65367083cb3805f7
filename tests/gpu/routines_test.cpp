// What a graph does on a device beside the kernels of authors: it keeps the rules of ptx_rules.h, and ptxas
// takes it.
#include "engine/run/cuda/routines.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/codegen/ptx_rules.h"
#include "engine/plane/testing.h"
#include "tests/gpu/ptxas.h"

namespace eagle::gpu_tests {
namespace {

using plane::DType;

class Routines : public testing::TestWithParam<const char*> {
protected:
  void expect_assembles(const std::string& ptx) {
    const Status rules = codegen::check_ptx(ptx);
    ASSERT_TRUE(rules.ok()) << rules.message() << "\n" << ptx;
    const Status status = assemble(ptx, GetParam());
    ASSERT_TRUE(status.ok()) << status.message() << "\n" << ptx;
  }
};

TEST_P(Routines, OfConditionalsAndRunsAreAssembled) {
  expect_assembles(run::cuda::guard_ptx(GetParam()));
  expect_assembles(run::cuda::step_ptx(GetParam(), true));
  expect_assembles(run::cuda::step_ptx(GetParam(), false));
  expect_assembles(run::cuda::count_zeros_ptx(GetParam()));
}

TEST_P(Routines, OfCopiesAreAssembledForEveryPairOfTypes) {
  for (const DType from : {DType::f64, DType::f32, DType::i64, DType::i32, DType::boolean}) {
    for (const DType to : {DType::f64, DType::f32, DType::i64, DType::i32, DType::boolean}) {
      graph::Copy copy;
      copy.source = plane::testing::array({3, 4}, from);
      copy.destination = plane::testing::transposed(plane::testing::array({4, 3}, to));
      expect_assembles(run::cuda::copy_routine(copy, GetParam()).ptx);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Arch, Routines, testing::Values("sm_75", "sm_80", "sm_90"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace eagle::gpu_tests
