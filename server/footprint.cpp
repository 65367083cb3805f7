#include "server/footprint.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "engine/plane/overlap.h"

namespace eagle::server {
namespace {

bool empty(const plane::Extent& bytes) { return bytes.first >= bytes.last; }
bool meet(const plane::Extent& a, const plane::Extent& b) { return a.first < b.last && b.first < a.last; }

}  // namespace

void Footprint::Side::add(const plane::View& view) {
  if (plane::elements(view) == 0) return;
  const plane::Extent one = plane::extent(view);
  bytes =
      empty(bytes) ? one : plane::Extent{std::min(bytes.first, one.first), std::max(bytes.last, one.last)};
  if (!exact || std::find(views.begin(), views.end(), view) != views.end()) return;
  if (views.size() < most_views) {
    views.push_back(view);
  } else {
    exact = false;
  }
}

std::shared_ptr<const Footprint> Footprint::of(std::span<const graph::Touches> touches,
                                               std::span<const PlaneBytes* const> planes) {
  std::vector<Use> by_index(planes.size());
  for (const graph::Touches& one : touches) {
    for (const graph::NamedView& named : one.reads) by_index[named.view.plane].reads.add(named.view);
    for (const graph::NamedView& named : one.writes) by_index[named.view.plane].writes.add(named.view);
  }
  auto made = std::make_shared<Footprint>();
  made->uses_.reserve(planes.size());
  for (std::size_t index = 0; index < planes.size(); ++index) {
    Use& use = by_index[index];
    if (planes[index] == nullptr || (empty(use.reads.bytes) && empty(use.writes.bytes))) continue;
    use.plane = planes[index];
    // Indices are of one description, and the two that are compared are of different ones.
    for (Side* side : {&use.reads, &use.writes}) {
      for (plane::View& view : side->views) view.plane = 0;
    }
    made->uses_.push_back(std::move(use));
  }
  std::sort(made->uses_.begin(), made->uses_.end(),
            [](const Use& a, const Use& b) { return std::less<>()(a.plane, b.plane); });
  return made;
}

bool Footprint::meet(const Side& a, const Side& b, std::int64_t& steps) {
  if (!server::meet(a.bytes, b.bytes)) return false;
  if (!a.exact || !b.exact) return true;
  for (const plane::View& one : a.views) {
    for (const plane::View& other : b.views) {
      if (steps <= 0) return true;
      const plane::Overlap found = plane::overlap(one, other, steps);
      if (found.overlaps) return true;
      steps -= found.steps + 1;
    }
  }
  return false;
}

bool Footprint::conflicts_with(const Footprint& other, std::int64_t& steps) const {
  const std::int64_t granted = std::min(steps, most_steps);
  std::int64_t left = granted;
  const bool conflict = meets(other, left);
  steps -= granted - left;
  return conflict;
}

// The first use from `from` on that is not of a plane before `plane`, found in steps that double: of two
// footprints of which one is long, most of the long one is never looked at.
auto Footprint::reach(Uses::const_iterator from, Uses::const_iterator end, const PlaneBytes* plane)
    -> Uses::const_iterator {
  const auto before = [plane](const Use& use) { return std::less<>()(use.plane, plane); };
  std::ptrdiff_t step = 1;
  while (step < end - from && before(from[step])) {
    from += step;
    step *= 2;
  }
  return std::partition_point(from, from + std::min(step, end - from), before);
}

bool Footprint::meets(const Footprint& other, std::int64_t& steps) const {
  auto mine = uses_.begin();
  auto its = other.uses_.begin();
  while (mine != uses_.end() && its != other.uses_.end()) {
    if (std::less<>()(mine->plane, its->plane)) {
      mine = reach(mine, uses_.end(), its->plane);
    } else if (std::less<>()(its->plane, mine->plane)) {
      its = reach(its, other.uses_.end(), mine->plane);
    } else {
      if (--steps < 0) return true;
      if (meet(mine->writes, its->writes, steps) || meet(mine->writes, its->reads, steps) ||
          meet(mine->reads, its->writes, steps)) {
        return true;
      }
      ++mine;
      ++its;
    }
  }
  return false;
}

}  // namespace eagle::server
