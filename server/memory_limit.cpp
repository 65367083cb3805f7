#include "server/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>

namespace eagle::server {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// A limit file holds a number or "max".
std::uint64_t limit_in(const std::string& path) {
  const std::string text = contents(path);
  std::uint64_t value = unlimited;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? value : unlimited;
}

// The least limit on the way from `group` up to the root. In a container the path may lie outside of what
// is mounted; the parts that are there count.
std::uint64_t least_limit(const std::string& root, std::string_view group, const char* file) {
  std::uint64_t least = unlimited;
  for (;;) {
    least = std::min(least, limit_in(root + std::string(group) + "/" + file));
    const std::size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string_view::npos) return least;
    group = group.substr(0, slash);
  }
}

bool names_memory(std::string_view controllers) {
  return ("," + std::string(controllers) + ",").find(",memory,") != std::string::npos;
}

}  // namespace

std::uint64_t cgroup_memory_limit(std::string_view membership, const std::string& root) {
  std::uint64_t least = unlimited;
  while (!membership.empty()) {
    const std::string_view line = membership.substr(0, membership.find('\n'));
    membership.remove_prefix(std::min(line.size() + 1, membership.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view group = line.substr(second + 1);
    if (controllers.empty()) least = std::min(least, least_limit(root, group, "memory.max"));
    if (names_memory(controllers)) {
      least = std::min(least, least_limit(root + "/memory", group, "memory.limit_in_bytes"));
    }
  }
  return least;
}

std::uint64_t memory_limit() {
  const auto ram = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(ram, cgroup_memory_limit(contents("/proc/self/cgroup"), "/sys/fs/cgroup"));
}

}  // namespace eagle::server
