// Graphs on the GPU of tests/fake_cuda, whose nodes run in any order that their parents allow.
#include "client/ctl/graph_check.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "engine/run/testing.h"

namespace eagle::ctl {
namespace {

class GpuGraphs : public ::testing::Test {
protected:
  void SetUp() override {
    const auto driver = run::cuda::Driver::open();
    ASSERT_TRUE(driver.ok()) << driver.status().to_string();
    const auto device = run::cuda::Device::open(*driver, 0);
    ASSERT_TRUE(device.ok()) << device.status().to_string();
    modules_ = std::make_unique<run::cuda::DeviceModules>(*device, compiler_);
    engine_ = eagle::testing::make_engine(1);
  }
  codegen::Compiler compiler_;
  std::unique_ptr<run::cuda::DeviceModules> modules_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(GpuGraphs, GiveTheBitsOfTheCpuInEveryLegalOrder) {
  constexpr std::uint64_t first_seed = 90'001;
  const std::uint64_t count = std::getenv("EAGLE_LONG") == nullptr ? 1'000 : 20'000;
  std::size_t nodes = 0, parents = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    const auto check = check_graph(*engine_, *modules_, seed);
    ASSERT_TRUE(check.ok()) << "seed " << seed << ": " << check.status().to_string();
    ASSERT_EQ(check->difference, "") << "seed " << seed;
    nodes += check->nodes;
    parents += check->parents;
  }
  std::printf("%zu nodes with %zu parents\n", nodes, parents);
  EXPECT_GT(parents, nodes / 2);
}

// Else the test above would show nothing.
TEST_F(GpuGraphs, ShowAParentThatTheDeviceIsNotToldOf) {
  int noticed = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto check = check_graph(*engine_, *modules_, seed, static_cast<std::int64_t>(seed % 5));
    ASSERT_TRUE(check.ok()) << check.status().to_string();
    noticed += check->difference.empty() ? 0 : 1;
  }
  // One order in two or so is wrong without it, and each graph is replayed four times.
  EXPECT_GE(noticed, 10);
}

}  // namespace
}  // namespace eagle::ctl
