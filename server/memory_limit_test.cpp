#include "server/memory_limit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

namespace eagle::server {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

// A tree in a directory of its own that looks like /sys/fs/cgroup.
class CgroupTree : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/cgroup.XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  std::string root_;
};

TEST_F(CgroupTree, VersionTwoTakesTheLeastUpToTheRoot) {
  write("a/memory.max", "3000");
  write("a/b/memory.max", "max");
  write("a/b/c/memory.max", "5000");
  EXPECT_EQ(cgroup_memory_limit("0::/a/b/c\n", root_), 3000u);
  EXPECT_EQ(cgroup_memory_limit("0::/a/b\n", root_), 3000u);
}

TEST_F(CgroupTree, VersionOneIsUnderItsController) {
  write("memory/a/memory.limit_in_bytes", "4096");
  EXPECT_EQ(cgroup_memory_limit("5:cpu,cpuacct:/x\n4:memory:/a\n", root_), 4096u);
  EXPECT_EQ(cgroup_memory_limit("4:hugetlb,memory:/a", root_), 4096u);
  EXPECT_EQ(cgroup_memory_limit("4:memory2:/a\n", root_), unlimited);
}

TEST_F(CgroupTree, PathsThatAreNotMountedFallBackToWhatIs) {
  write("memory.max", "777");
  EXPECT_EQ(cgroup_memory_limit("0::/outside/of/the/container\n", root_), 777u);
}

TEST_F(CgroupTree, NothingMeansUnlimited) {
  EXPECT_EQ(cgroup_memory_limit("", root_), unlimited);
  EXPECT_EQ(cgroup_memory_limit("garbage\n::\n0::/\n", root_), unlimited);
}

TEST(MemoryLimit, IsAtMostTheMachine) {
  EXPECT_GT(memory_limit(), 0u);
  EXPECT_LT(memory_limit(), std::uint64_t{1} << 50);
}

}  // namespace
}  // namespace eagle::server
