// How much memory this process may use, and what of it planes get.
#pragma once

#include <cstdint>

namespace eagle::server {

// The least of RAM and the memory limits of this process's cgroup and those above it.
std::uint64_t memory_limit();

// Planes may take three quarters: the rest is for code, graphs, messages and stacks.
constexpr std::uint64_t plane_budget_of(std::uint64_t limit) { return limit / 4 * 3; }

}  // namespace eagle::server
