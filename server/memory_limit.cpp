#include "server/memory_limit.h"

#include <unistd.h>

#include <algorithm>

#include "engine/run/cgroup.h"

namespace eagle::server {

std::uint64_t memory_limit() {
  const auto ram = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(ram, run::cgroup_memory("/").value_or(ram));
}

}  // namespace eagle::server
