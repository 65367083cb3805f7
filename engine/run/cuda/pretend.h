// What tests have the driver of tests/fake_cuda pretend, for tests that run on a GPU, too (tests/gpu/run.sh,
// which sets EAGLE_REAL_GPU).
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace eagle::run::cuda::testing {

inline bool on_a_gpu() { return std::getenv("EAGLE_REAL_GPU") != nullptr; }

// Before the first use of the driver, which reads it once. For a test that is right without it, if less
// sharp.
inline void pretend(const std::string& what) {
  if (!on_a_gpu()) ::setenv("EAGLE_FAKE_CUDA", what.c_str(), 1);
}

}  // namespace eagle::run::cuda::testing

// Ends a test of what no GPU does when it is asked to. `what` may be empty: of an order that a GPU does not
// keep.
#define EAGLE_PRETEND_OR_SKIP(what)                                                                  \
  do {                                                                                               \
    if (eagle::run::cuda::testing::on_a_gpu()) GTEST_SKIP() << "for the driver without a GPU alone"; \
    eagle::run::cuda::testing::pretend(what);                                                        \
  } while (false)
