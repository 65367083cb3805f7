#include "engine/run/cgroup.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace eagle::run {
namespace {

namespace fs = std::filesystem;

// One line of /proc/self/cgroup: "4:cpu,cpuacct:/a/b", or "0::/a/b" for version 2.
struct Membership {
  std::string controllers;
  std::string path;
};

std::vector<Membership> memberships(const fs::path& root) {
  std::vector<Membership> found;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    if (first == std::string::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    found.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return found;
}

bool has_cpu_controller(const std::string& controllers) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

// ceil(quota / period) CPUs; empty where that makes no sense (-1 is "no quota" in version 1).
std::optional<int> cpus(std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || period <= 0) return {};
  const std::int64_t whole = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<int>(std::min<std::int64_t>(whole, std::numeric_limits<int>::max()));
}

std::optional<std::int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  if (file >> value) return value;
  return {};
}

// "max 100000" or "150000 100000".
std::optional<int> version_2(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  std::int64_t quota = 0;
  std::int64_t period = 0;
  if (file >> quota >> period) return cpus(quota, period);
  return {};
}

std::optional<int> version_1(const fs::path& group) {
  const std::optional<std::int64_t> quota = number_in(group / "cpu.cfs_quota_us");
  const std::optional<std::int64_t> period = number_in(group / "cpu.cfs_period_us");
  return quota && period ? cpus(*quota, *period) : std::nullopt;
}

std::optional<int> least(std::optional<int> a, std::optional<int> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// The group and all above it count. Inside a container the path may be the host's, which is not there
// under the container's own mount; then what is left is the mount's root, which is the container's group.
template <typename Quota>
std::optional<int> tightest(const fs::path& mount, const std::string& path, Quota quota_of) {
  std::optional<int> found = quota_of(mount);
  fs::path group = mount;
  for (const fs::path& part : fs::path(path).relative_path()) {
    if (part == "..") break;  // a group outside this namespace: nothing below is ours to read
    group /= part;
    found = least(found, quota_of(group));
  }
  return found;
}

}  // namespace

std::optional<int> cgroup_cpus(const fs::path& root) {
  const fs::path mounts = root / "sys/fs/cgroup";
  std::optional<int> found;
  for (const Membership& group : memberships(root)) {
    if (group.controllers.empty()) {
      found = least(found, tightest(mounts, group.path, version_2));
      found = least(found, tightest(mounts / "unified", group.path, version_2));  // beside version 1
    } else if (has_cpu_controller(group.controllers)) {
      found = least(found, tightest(mounts / "cpu", group.path, version_1));
      found = least(found, tightest(mounts / group.controllers, group.path, version_1));
    }
  }
  return found;
}

}  // namespace eagle::run
