#include "server/memory_limit.h"

#include <gtest/gtest.h>

#include "engine/run/cgroup.h"

namespace eagle::server {
namespace {

TEST(MemoryLimit, IsAtMostTheMachineAndItsCgroup) {
  EXPECT_GT(memory_limit(), 0u);
  EXPECT_LT(memory_limit(), std::uint64_t{1} << 50);
  EXPECT_LE(memory_limit(), run::cgroup_memory("/").value_or(UINT64_MAX));
}

TEST(MemoryLimit, PlanesGetThreeQuarters) { EXPECT_EQ(plane_budget_of(4096), 3072u); }

}  // namespace
}  // namespace eagle::server
