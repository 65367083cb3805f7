#include "engine/graph/meetings.h"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "engine/plane/overlap.h"

namespace eagle::graph {
namespace {

struct SameView {
  bool operator()(const plane::View* a, const plane::View* b) const { return *a == *b; }
};

struct HashView {
  std::size_t operator()(const plane::View* view) const {
    std::size_t hash = view->plane;
    const auto mix = [&](std::int64_t number) {
      hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 32U;
    };
    mix(view->offset);
    mix(view->item_bytes);
    for (const std::int64_t n : view->shape) mix(n);
    for (const std::int64_t s : view->strides) mix(s);
    return hash;
  }
};

// A place with the interval [first, last) that an index sorts by.
struct Entry {
  const Place* place = nullptr;
  plane::Band band;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

// Entries that began before the sweep line and have not been seen to end.
struct Active {
  std::vector<const Entry*> written;
  std::vector<const Entry*> read_only;
};

// Compares two entries; false: stop.
using Compare = std::function<bool(const Entry&, const Entry&)>;

// Compares `current` with active entries, dropping those that ended before it.
bool scan(std::vector<const Entry*>& active, const Entry& current, const Compare& compare) {
  for (std::size_t i = 0; i < active.size();) {
    if (active[i]->last <= current.first) {
      active[i] = active.back();
      active.pop_back();
    } else if (!compare(*active[i++], current)) {
      return false;
    }
  }
  return true;
}

// Compares each pair of entries whose intervals meet, reads with reads excepted, and two entries of one row
// stride excepted if `bands_apart` (those are compared by their bands).
bool sweep(std::vector<Entry>& entries, bool bands_apart, const Compare& compare) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.first < b.first; });
  std::map<std::int64_t, Active> by_stride;
  for (const Entry& current : entries) {
    const bool written = !current.place->writes.empty();
    for (auto& [stride, active] : by_stride) {
      if (bands_apart && stride != 0 && stride == current.band.stride) continue;
      if (!scan(active.written, current, compare)) return false;
      if (written && !scan(active.read_only, current, compare)) return false;
    }
    Active& mine = by_stride[current.band.stride];
    (written ? mine.written : mine.read_only).push_back(&current);
  }
  return true;
}

// Row strides that many views share are worth an index of their own; every other view goes by its bounds.
void keep_common_strides(std::vector<Entry>& entries) {
  constexpr std::size_t most = 8;  // a sweep looks at each of them for every entry
  std::map<std::int64_t, std::int64_t> counts;
  for (const Entry& entry : entries) ++counts[entry.band.stride];
  counts.erase(0);
  std::vector<std::pair<std::int64_t, std::int64_t>> common;  // (count, stride)
  for (const auto& [stride, count] : counts) common.emplace_back(count, stride);
  std::sort(common.rbegin(), common.rend());
  common.resize(std::min(common.size(), most));
  for (Entry& entry : entries) {
    const bool kept = std::any_of(common.begin(), common.end(),
                                  [&](const auto& row) { return row.second == entry.band.stride; });
    if (!kept) entry.band.stride = 0;
  }
}

// All entries of one plane.
bool sweep_plane(std::vector<Entry>& entries, const Compare& compare) {
  keep_common_strides(entries);
  std::map<std::int64_t, std::vector<Entry>> banded;
  for (const Entry& entry : entries) {
    if (entry.band.stride == 0) continue;
    banded[entry.band.stride].push_back({entry.place, entry.band, entry.band.first, entry.band.last});
  }
  for (auto& [stride, group] : banded) {
    if (!sweep(group, false, compare)) return false;
  }
  for (Entry& entry : entries) {
    const plane::Extent extent = plane::extent(*entry.place->view);
    entry.first = extent.first;
    entry.last = extent.last;
  }
  return sweep(entries, true, compare);
}

}  // namespace

std::vector<Place> places_of(const std::vector<Leaf>& leaves) {
  std::vector<Place> places;
  std::unordered_map<const plane::View*, std::size_t, HashView, SameView> index;
  const auto place_of = [&](const plane::View& view) -> Place* {
    if (plane::elements(view) == 0) return nullptr;
    const auto [found, fresh] = index.emplace(&view, places.size());
    if (fresh) places.push_back({&view, {}, {}});
    return &places[found->second];
  };
  for (std::uint32_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const Touches& touches = leaves[leaf].touches;
    for (std::uint32_t i = 0; i < touches.reads.size(); ++i) {
      if (Place* const place = place_of(touches.reads[i].view)) place->reads.push_back({leaf, i});
    }
    for (std::uint32_t i = 0; i < touches.writes.size(); ++i) {
      if (Place* const place = place_of(touches.writes[i].view)) place->writes.push_back({leaf, i});
    }
  }
  return places;
}

bool for_each_meeting(const std::vector<Place>& places, Work& work,
                      const std::function<void(const Place&, const Place&)>& visit) {
  const auto compare = [&](const Entry& a, const Entry& b) {
    if (work.left <= 0) return false;
    const plane::Overlap found =
        plane::overlap(*a.place->view, *b.place->view, std::min(work.left, plane::default_work_cap));
    work.left -= 1 + found.steps;
    if (found.overlaps) visit(*a.place, *b.place);
    return true;
  };
  std::map<std::uint32_t, std::vector<Entry>> by_plane;
  for (const Place& place : places) {
    if (!place.writes.empty()) visit(place, place);
    by_plane[place.view->plane].push_back({&place, plane::band_of(*place.view), 0, 0});
  }
  for (auto& [plane, entries] : by_plane) {
    if (!sweep_plane(entries, compare)) return false;
  }
  return true;
}

std::vector<Side> sides_of(const Place& a, const Place& b) {
  std::vector<Side> sides;
  const auto add = [&](const Place& source, const Place& destination) {
    for (const Side& side : {Side{Hazard::raw, &source.writes, &destination.reads},
                             Side{Hazard::waw, &source.writes, &destination.writes},
                             Side{Hazard::war, &source.reads, &destination.writes}}) {
      if (!side.sources->empty() && !side.destinations->empty()) sides.push_back(side);
    }
  };
  add(a, b);
  if (&a != &b) add(b, a);
  return sides;
}

std::uint32_t rank(const Leaf& source, Hazard kind, std::uint32_t index) {
  switch (kind) {
    case Hazard::raw:
      return 2 * index;
    case Hazard::waw:
      return 2 * index + 1;
    case Hazard::war:
      return 2 * static_cast<std::uint32_t>(source.touches.writes.size()) + index;
  }
  return 0;
}

}  // namespace eagle::graph
