#include "engine/view/paths.h"

#include <algorithm>
#include <cstddef>

namespace eagle::view {
namespace {

// Leaves come first among the bottoms of a net, ascending; at most one lane follows.
std::size_t bottom_of(const Net& net, std::uint32_t leaf) {
  const auto leaves_end = net.bottoms.end() - (net.bottoms.back().is_lane ? 1 : 0);
  const auto found = std::lower_bound(net.bottoms.begin(), leaves_end, leaf,
                                      [](const End& end, std::uint32_t index) { return end.index < index; });
  return static_cast<std::size_t>(found - net.bottoms.begin());
}

// Adds a point, unless the line does not turn at the one before.
void add(std::vector<Point>& path, Point next) {
  if (!path.empty() && path.back() == next) return;
  const std::size_t size = path.size();
  if (size >= 2) {
    const bool down = path[size - 2].x == path[size - 1].x && path[size - 1].x == next.x;
    const bool across = path[size - 2].y == path[size - 1].y && path[size - 1].y == next.y;
    if (down || across) path.pop_back();
  }
  path.push_back(next);
}

}  // namespace

PathFinder::PathFinder(const Grid& grid, const Routes& routes,
                       const std::vector<std::vector<NetTrace>>& traces)
    : grid_(grid), routes_(routes), traces_(traces) {
  for (std::size_t row = 0; row < routes.gaps.size(); ++row) {
    for (std::uint32_t n = 0; n < routes.gaps[row].size(); ++n) {
      const Net& net = routes.gaps[row][n];
      for (std::uint32_t t = 0; t < net.tops.size(); ++t) {
        const End& top = net.tops[t];
        if (top.is_lane) {
          of_lane_[key(top.index, row)] = {n, t};
        } else {
          of_leaf_[top.index] = {n, t};
        }
      }
    }
  }
}

std::vector<Point> PathFinder::find(Order order, std::int64_t& steps_left) const {
  const auto start = of_leaf_.find(order.before);
  if (start == of_leaf_.end()) return {};
  std::vector<Point> path;
  Place place = start->second;
  for (std::uint32_t row = grid_.leaves[order.before].row;; ++row) {
    if (steps_left-- <= 0) return {};
    const Net& net = routes_.gaps[row][place.net];
    const NetTrace& trace = traces_[row][place.net];
    const bool arrives = grid_.leaves[order.after].row == row + 1;
    const std::size_t bottom = arrives ? bottom_of(net, order.after) : net.bottoms.size() - 1;
    add(path, trace.tops[place.top]);
    if (!trace.straight) {
      add(path, {trace.tops[place.top].x, trace.track});
      add(path, {trace.bottoms[bottom].x, trace.track});
    }
    add(path, trace.bottoms[bottom]);
    if (arrives) return path;
    const auto next = of_lane_.find(key(net.bottoms[bottom].index, row + 1));
    if (next == of_lane_.end()) return {};
    place = next->second;
  }
}

}  // namespace eagle::view
