#include "engine/run/cgroup.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>

namespace eagle::run {
namespace {

namespace fs = std::filesystem;

bool names(const std::string& controllers, std::string_view wanted) {
  std::istringstream each(controllers);
  for (std::string name; std::getline(each, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

template <typename Limit>
std::optional<Limit> least(std::optional<Limit> a, std::optional<Limit> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// The least limit of the group and all above it. Inside a container the path may be the host's, which is
// not there under the container's own mount; then what is left is the mount's root, which is the
// container's group.
template <typename Read>
auto tightest(const fs::path& mount, const std::string& path, Read limit_in) {
  auto found = limit_in(mount);
  fs::path group = mount;
  for (const fs::path& part : fs::path(path).relative_path()) {
    if (part == "..") break;  // a group outside this namespace: nothing below is ours to read
    group /= part;
    found = least(found, limit_in(group));
  }
  return found;
}

// Over every hierarchy that has `controller`. A line of /proc/self/cgroup is "4:cpu,cpuacct:/a/b", or
// "0::/a/b" for version 2, which may be mounted beside version 1.
template <typename Version1, typename Version2>
auto tightest_of(const fs::path& root, std::string_view controller, Version1 version_1, Version2 version_2) {
  const fs::path mounts = root / "sys/fs/cgroup";
  decltype(version_1(mounts)) found;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      found = least(found, tightest(mounts, path, version_2));
      found = least(found, tightest(mounts / "unified", path, version_2));
    } else if (names(controllers, controller)) {
      found = least(found, tightest(mounts / controller, path, version_1));
      found = least(found, tightest(mounts / controllers, path, version_1));
    }
  }
  return found;
}

std::optional<std::int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  if (file >> value) return value;
  return {};
}

// ceil(quota / period) CPUs; empty where that makes no sense (-1 is "no quota" in version 1).
std::optional<int> cpus(std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || period <= 0) return {};
  const std::int64_t whole = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<int>(std::min<std::int64_t>(whole, std::numeric_limits<int>::max()));
}

// "max 100000" or "150000 100000".
std::optional<int> cpus_of_version_2(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  std::int64_t quota = 0;
  std::int64_t period = 0;
  if (file >> quota >> period) return cpus(quota, period);
  return {};
}

std::optional<int> cpus_of_version_1(const fs::path& group) {
  const std::optional<std::int64_t> quota = number_in(group / "cpu.cfs_quota_us");
  const std::optional<std::int64_t> period = number_in(group / "cpu.cfs_period_us");
  return quota && period ? cpus(*quota, *period) : std::nullopt;
}

// A number of bytes, or "max".
std::optional<std::uint64_t> bytes_in(const fs::path& path) {
  const std::optional<std::int64_t> bytes = number_in(path);
  if (!bytes || *bytes < 0) return {};
  return static_cast<std::uint64_t>(*bytes);
}

}  // namespace

std::optional<int> cgroup_cpus(const fs::path& root) {
  return tightest_of(root, "cpu", cpus_of_version_1, cpus_of_version_2);
}

std::optional<std::uint64_t> cgroup_memory(const fs::path& root) {
  return tightest_of(
      root, "memory", [](const fs::path& group) { return bytes_in(group / "memory.limit_in_bytes"); },
      [](const fs::path& group) { return bytes_in(group / "memory.max"); });
}

}  // namespace eagle::run
