// What bounds a team, as pure functions: `host.cpp` asks the system and takes the least.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace eagle::run {

// The first number of OMP_NUM_THREADS ("4", "4,2": outer level first); empty where there is none that
// OpenMP would take.
inline std::optional<int> omp_num_threads(std::string_view value) {
  const std::size_t first = value.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  value.remove_prefix(first);
  int threads = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), threads);
  const std::string_view rest(end, static_cast<std::size_t>(value.data() + value.size() - end));
  const std::size_t next = rest.find_first_not_of(" \t");
  const bool ends_well = next == std::string_view::npos || rest[next] == ',';
  if (error != std::errc() || threads < 1 || !ends_well) return {};
  return threads;
}

// The least of `affinity` and those bounds that exist, at least 1.
inline int team_bound(int affinity, std::optional<int> quota, std::optional<int> omp) {
  int threads = affinity;
  if (quota) threads = std::min(threads, *quota);
  if (omp) threads = std::min(threads, *omp);
  return std::max(threads, 1);
}

// Threads that a process should still be able to start beside its team: the daemon's own, a client's.
constexpr int spare_threads = 32;

// A team of at most `wanted` threads, one of which is the caller's own, where `started` more could be started
// at the same time, asked for `wanted - 1 + spare_threads`.
inline int team_that_starts(int wanted, int started) {
  return std::clamp(started + 1 - spare_threads, 1, wanted);
}

}  // namespace eagle::run
