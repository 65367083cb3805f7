// The limits of the control groups that this process is in: CPU and memory, versions 1 and 2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace eagle::run {

// A limit holds for all groups below the one that sets it, so the tightest on the way from the process's
// own group to the root counts. `root` stands for "/": proc/self/cgroup and sys/fs/cgroup are read below
// it. Empty where no limit is set.

// Whole CPUs, rounded up (cpu.max; cpu.cfs_quota_us in version 1).
std::optional<int> cgroup_cpus(const std::filesystem::path& root);

// Bytes of memory (memory.max; memory.limit_in_bytes in version 1).
std::optional<std::uint64_t> cgroup_memory(const std::filesystem::path& root);

}  // namespace eagle::run
