// Paths: the way of each single edge along the lines that it shares with others.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/view/layout.h"
#include "engine/view/routes.h"

namespace eagle::view {

// Where a net runs: from its tops down to the track, along it, and down to its bottoms.
struct NetTrace {
  std::vector<Point> tops;     // as Net::tops
  std::vector<Point> bottoms;  // as Net::bottoms
  int track = 0;               // a line of the picture; of a straight net: none
  bool straight = false;
};

class PathFinder {
public:
  // All of them outlive it; `traces` is by gap and net, as `routes.gaps`.
  PathFinder(const Grid& grid, const Routes& routes, const std::vector<std::vector<NetTrace>>& traces);

  // The points at which the edge's line begins, turns and ends; none where it has no line, or where
  // `steps_left` (one a row) are spent.
  std::vector<Point> find(Order order, std::int64_t& steps_left) const;

private:
  struct Place {
    std::uint32_t net = 0;
    std::uint32_t top = 0;
  };
  static std::uint64_t key(std::uint32_t lane, std::size_t row) {
    return (std::uint64_t{lane} << 32U) | static_cast<std::uint64_t>(row);
  }

  const Grid& grid_;
  const Routes& routes_;
  const std::vector<std::vector<NetTrace>>& traces_;
  std::unordered_map<std::uint32_t, Place> of_leaf_;  // in the gap below its row
  std::unordered_map<std::uint64_t, Place> of_lane_;  // by lane and row
};

}  // namespace eagle::view
