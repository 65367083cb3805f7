// How much memory this process may use, and what of it planes get.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace eagle::server {

// The least of RAM and the memory limits of this process's cgroup and those above it.
std::uint64_t memory_limit();

// Planes may take three quarters: the rest is for code, graphs, messages and stacks.
constexpr std::uint64_t plane_budget_of(std::uint64_t limit) { return limit / 4 * 3; }

// The least memory limit of a cgroup and those above it, or UINT64_MAX when there is none. `membership`
// is the text of /proc/self/cgroup, `root` is /sys/fs/cgroup (versions 1 and 2).
std::uint64_t cgroup_memory_limit(std::string_view membership, const std::string& root);

}  // namespace eagle::server
