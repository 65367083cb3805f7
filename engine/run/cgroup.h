// The CPU quota of the control groups that this process is in.
#pragma once

#include <filesystem>
#include <optional>

namespace eagle::run {

// Whole CPUs that the tightest quota on the way from the process's own group to the root allows, rounded
// up; empty where none is set. Knows version 2 (cpu.max) and version 1 (cpu.cfs_quota_us). `root` stands
// for "/": proc/self/cgroup and sys/fs/cgroup are read below it.
std::optional<int> cgroup_cpus(const std::filesystem::path& root);

}  // namespace eagle::run
