// Share: which samples of a launch each thread of a team runs.
#pragma once

#include <algorithm>
#include <cstdint>

namespace eagle::run {

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] bool empty() const { return begin >= end; }
  friend bool operator==(const Range&, const Range&) = default;
};

// The contiguous units [begin, end) of thread `thread` of `team`, of `units` of equal work. Shares differ by
// one unit at most. units >= 0, 0 <= thread < team.
constexpr Range even_share(std::int64_t units, int thread, int team) {
  const std::int64_t each = units / team;
  const std::int64_t more = units % team;  // the first `more` threads take one unit more
  const std::int64_t first = each * thread + std::min<std::int64_t>(thread, more);
  return {first, first + each + (thread < more ? 1 : 0)};
}

// Samples are cut at multiples of this: a whole number of vectors of any width, and whole cache lines of
// even a bool plane.
constexpr std::int64_t share_grain = 64;

// The contiguous samples of thread `thread` of `team`. The map is fixed: in every launch over as many
// samples a thread gets the same ones, which it then still has in its cache. (Handing out tiles
// dynamically made two threads slower than one in single-pass work.) Shares differ by one grain at most.
// samples >= 0, 0 <= thread < team.
constexpr Range share_of(std::int64_t samples, int thread, int team) {
  const std::int64_t grains = samples / share_grain + (samples % share_grain != 0 ? 1 : 0);
  const Range share = even_share(grains, thread, team);
  return {std::min(share.begin * share_grain, samples),
          share.end == grains ? samples : share.end * share_grain};
}

}  // namespace eagle::run
