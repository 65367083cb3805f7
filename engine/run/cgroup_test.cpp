#include "engine/run/cgroup.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace eagle::run {
namespace {

namespace fs = std::filesystem;

// A file tree that stands for "/".
class Cgroup : public testing::Test {
protected:
  Cgroup() {
    std::string pattern = (fs::temp_directory_path() / "eagle-cgroup-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~Cgroup() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  fs::path root_;
};

TEST_F(Cgroup, NoFilesMeanNoQuota) { EXPECT_EQ(cgroup_cpus(root_), std::nullopt); }

TEST_F(Cgroup, Version2QuotaIsRoundedUp) {
  write("proc/self/cgroup", "0::/a\n");
  write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(cgroup_cpus(root_), 2);
  write("sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  EXPECT_EQ(cgroup_cpus(root_), 2);
  write("sys/fs/cgroup/a/cpu.max", "1000 100000\n");
  EXPECT_EQ(cgroup_cpus(root_), 1);
}

TEST_F(Cgroup, Version2MaxIsNoQuota) {
  write("proc/self/cgroup", "0::/a\n");
  write("sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpus(root_), std::nullopt);
}

TEST_F(Cgroup, TheTightestGroupOnTheWayUpCounts) {
  write("proc/self/cgroup", "0::/a/b/c\n");
  write("sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/a/b/c/cpu.max", "500000 100000\n");
  write("sys/fs/cgroup/other/cpu.max", "100000 100000\n");
  EXPECT_EQ(cgroup_cpus(root_), 3);
}

TEST_F(Cgroup, InAContainerTheMountsRootIsTheGroup) {
  write("proc/self/cgroup", "0::/docker/0123456789\n");  // a path of the host, not there inside
  write("sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(cgroup_cpus(root_), 4);
}

TEST_F(Cgroup, Version1QuotaIsRead) {
  write("proc/self/cgroup", "9:name=systemd:/x\n3:cpuset:/y\n2:cpu,cpuacct:/g\n0::/\n");
  write("sys/fs/cgroup/cpu,cpuacct/g/cpu.cfs_quota_us", "250000\n");
  write("sys/fs/cgroup/cpu,cpuacct/g/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpus(root_), 3);
}

TEST_F(Cgroup, Version1WithoutQuotaIsMinusOne) {
  write("proc/self/cgroup", "1:cpu:/\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpus(root_), std::nullopt);
}

TEST_F(Cgroup, GarbageIsNoQuota) {
  write("proc/self/cgroup", "no colons\n0:\n0::/a/../../etc\n");
  write("sys/fs/cgroup/a/cpu.max", "-5 0\n");
  write("sys/fs/cgroup/cpu.max", "many\n");
  write("sys/etc/cpu.max", "100000 100000\n");  // reached only by a walk that follows ".."
  EXPECT_EQ(cgroup_cpus(root_), std::nullopt);
}

TEST_F(Cgroup, MemoryOfVersion2IsTheLeastUpToTheRoot) {
  write("proc/self/cgroup", "0::/a/b/c\n");
  write("sys/fs/cgroup/a/memory.max", "3000\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/b/c/memory.max", "5000\n");
  EXPECT_EQ(cgroup_memory(root_), 3000u);
}

TEST_F(Cgroup, MemoryOfVersion1IsUnderItsController) {
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n");
  write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/a\n");
  EXPECT_EQ(cgroup_memory(root_), 4096u);
  write("proc/self/cgroup", "4:hugetlb,memory:/a");
  EXPECT_EQ(cgroup_memory(root_), 4096u);
  write("proc/self/cgroup", "4:memory2:/a\n");
  EXPECT_EQ(cgroup_memory(root_), std::nullopt);
}

TEST_F(Cgroup, MemoryOfAPathThatIsNotMountedIsThatOfTheMount) {
  write("proc/self/cgroup", "0::/outside/of/the/container\n");
  write("sys/fs/cgroup/memory.max", "777\n");
  EXPECT_EQ(cgroup_memory(root_), 777u);
}

TEST_F(Cgroup, GarbageIsNoMemoryLimit) {
  write("proc/self/cgroup", "garbage\n::\n0::/\n");
  EXPECT_EQ(cgroup_memory(root_), std::nullopt);
  write("sys/fs/cgroup/memory.max", "-3\n");
  EXPECT_EQ(cgroup_memory(root_), std::nullopt);
}

}  // namespace
}  // namespace eagle::run
