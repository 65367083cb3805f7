#include "engine/view/ordering.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <limits>
#include <utility>

#include "engine/plane/view.h"

namespace eagle::view {
namespace {

using graph::Leaf;
using plane::View;

constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t search_steps = 200'000'000;

// Whether whatever runs beside `b` runs beside `a` too; `a` comes first.
bool has_all_siblings_of(const Leaf& a, const Leaf& b) {
  return a.beside.size() >= b.beside.size() &&
         std::equal(b.beside.rbegin(), b.beside.rend(), a.beside.rbegin());
}

// True if the elements of the view fill its extent without a hole.
bool is_dense(const View& view) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;  // (stride, extent)
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] > 1) dimensions.emplace_back(std::abs(view.strides[d]), view.shape[d]);
  }
  std::ranges::sort(dimensions);
  std::int64_t filled = view.item_bytes;
  for (const auto& [stride, count] : dimensions) {
    if (stride != filled) return false;
    filled *= count;
  }
  return true;
}

// True only if every byte of `inner` is one of `outer`; the two meet.
bool covers(const View& outer, const View& inner) {
  if (outer == inner) return true;
  const plane::Extent around = plane::extent(outer);
  const plane::Extent within = plane::extent(inner);
  return around.first <= within.first && within.last <= around.last && is_dense(outer);
}

}  // namespace

Ordering::Ordering(const std::vector<Leaf>& leaves, graph::Work& work)
    : leaves_(leaves), places_(leaves.size()) {
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    places_[leaf].reads.resize(leaves[leaf].touches.reads.size(), no_place);
    places_[leaf].writes.resize(leaves[leaf].touches.writes.size(), no_place);
  }
  const std::vector<graph::Place> places = graph::places_of(leaves);
  for (std::uint32_t place = 0; place < places.size(); ++place) {
    for (const graph::Touch& touch : places[place].reads) places_[touch.leaf].reads[touch.index] = place;
    for (const graph::Touch& touch : places[place].writes) places_[touch.leaf].writes[touch.index] = place;
  }
  neighbours_.resize(places.size());
  const auto link = [&](const graph::Place& from, const graph::Place& to) {
    const bool covered = !from.writes.empty() && covers(*from.view, *to.view);
    neighbours_[&from - places.data()].push_back({static_cast<std::uint32_t>(&to - places.data()), covered});
  };
  complete_ = graph::for_each_meeting(places, work, [&](const graph::Place& a, const graph::Place& b) {
    link(a, b);
    if (&a != &b) link(b, a);
  });
  for (std::vector<Neighbour>& of_place : neighbours_) std::ranges::sort(of_place, {}, &Neighbour::place);
}

bool Ordering::meets_any(std::uint32_t place, const std::vector<std::uint32_t>& others) const {
  const auto found = [&](std::uint32_t other) {
    return std::ranges::binary_search(neighbours_[place], other, {}, &Neighbour::place);
  };
  return place != no_place && std::ranges::any_of(others, found);
}

std::vector<graph::Edge> Ordering::hazards(Order order) const {
  const graph::Touches& touches = leaves_[order.before].touches;
  const LeafPlaces& before = places_[order.before];
  const LeafPlaces& after = places_[order.after];
  std::vector<graph::Edge> found;
  const auto add = [&](const std::string& plane, graph::Hazard kind, bool meets) {
    graph::Edge edge{order.before, order.after, plane, kind};
    if (meets && std::ranges::find(found, edge) == found.end()) found.push_back(std::move(edge));
  };
  for (std::size_t i = 0; i < before.writes.size(); ++i) {
    add(touches.writes[i].name, graph::Hazard::raw, meets_any(before.writes[i], after.reads));
    add(touches.writes[i].name, graph::Hazard::waw, meets_any(before.writes[i], after.writes));
  }
  for (std::size_t i = 0; i < before.reads.size(); ++i) {
    add(touches.reads[i].name, graph::Hazard::war, meets_any(before.reads[i], after.writes));
  }
  return found;
}

// One pass over the leaves in order. Of each place it keeps the touches that a later leaf may still have to
// wait for: whoever meets a covered touch meets the write over it too, which already waits for that touch.
class Reduction {
public:
  explicit Reduction(const Ordering& ordering)
      : ordering_(ordering), history_(ordering.neighbours_.size()), seen_(ordering.leaves_.size(), never) {}

  std::optional<std::vector<Order>> run() {
    for (std::uint32_t leaf = 0; leaf < seen_.size(); ++leaf) {
      if (orders_.size() > most_orders) return std::nullopt;
      first_.push_back(orders_.size());
      find_candidates(leaf);
      keep_irreducible(leaf);
      remember(leaf);
    }
    return std::move(orders_);
  }

private:
  struct Touch {
    std::uint32_t leaf = 0;
    // The stage whose write covered this touch. It orders the leaves of later stages, but not yet its own
    // siblings.
    std::uint32_t covered_in = never;
  };
  struct History {
    std::vector<Touch> reads;
    std::vector<Touch> writes;
  };

  void find_candidates(std::uint32_t leaf) {
    candidates_.clear();
    for (const std::uint32_t place : ordering_.places_[leaf].reads) scan_neighbours(place, leaf, false);
    for (const std::uint32_t place : ordering_.places_[leaf].writes) scan_neighbours(place, leaf, true);
  }

  void scan_neighbours(std::uint32_t place, std::uint32_t leaf, bool writes) {
    if (place == Ordering::no_place) return;
    for (const Ordering::Neighbour& neighbour : ordering_.neighbours_[place]) {
      scan(history_[neighbour.place].writes, leaf);
      if (writes) scan(history_[neighbour.place].reads, leaf);
    }
  }

  void scan(std::vector<Touch>& touches, std::uint32_t leaf) {
    const std::vector<Leaf>& leaves = ordering_.leaves_;
    std::erase_if(touches, [&](const Touch& touch) { return touch.covered_in < leaves[leaf].stage; });
    for (const Touch& touch : touches) {
      if (seen_[touch.leaf] == leaf || graph::siblings(leaves, touch.leaf, leaf)) continue;
      seen_[touch.leaf] = leaf;
      candidates_.push_back(touch.leaf);
    }
  }

  // From the latest candidate back: one that an accepted one already waits for is implied.
  void keep_irreducible(std::uint32_t leaf) {
    std::ranges::sort(candidates_, std::greater<>());
    for (const std::uint32_t candidate : candidates_) seen_[candidate] = never;
    for (const std::uint32_t candidate : candidates_) {
      if (seen_[candidate] == leaf) continue;
      orders_.push_back({candidate, leaf});
      if (candidate != candidates_.back()) mark_ancestors(candidate, candidates_.back(), leaf);
    }
    std::reverse(orders_.begin() + static_cast<std::ptrdiff_t>(first_[leaf]), orders_.end());
  }

  void mark_ancestors(std::uint32_t from, std::uint32_t oldest, std::uint32_t mark) {
    stack_.assign(1, from);
    while (!stack_.empty() && steps_ < search_steps) {
      const std::uint32_t leaf = stack_.back();
      stack_.pop_back();
      for (std::size_t at = first_[leaf]; at < first_[leaf + 1]; ++at, ++steps_) {
        const std::uint32_t ancestor = orders_[at].before;
        if (ancestor < oldest || seen_[ancestor] == mark) continue;
        seen_[ancestor] = mark;
        stack_.push_back(ancestor);
      }
    }
  }

  void remember(std::uint32_t leaf) {
    const Ordering::LeafPlaces& places = ordering_.places_[leaf];
    for (const std::uint32_t place : places.writes) {
      if (place == Ordering::no_place) continue;
      for (const Ordering::Neighbour& neighbour : ordering_.neighbours_[place]) {
        if (!neighbour.covered) continue;
        cover(history_[neighbour.place].reads, leaf);
        cover(history_[neighbour.place].writes, leaf);
      }
    }
    for (const std::uint32_t place : places.reads) {
      if (place != Ordering::no_place) history_[place].reads.push_back({leaf, never});
    }
    for (const std::uint32_t place : places.writes) {
      if (place != Ordering::no_place) history_[place].writes.push_back({leaf, never});
    }
  }

  void cover(std::vector<Touch>& touches, std::uint32_t writer) {
    const std::vector<Leaf>& leaves = ordering_.leaves_;
    std::erase_if(touches, [&](Touch& touch) {
      // Siblings race rather than order each other.
      if (graph::siblings(leaves, touch.leaf, writer)) return false;
      const bool same_stage = leaves[touch.leaf].stage == leaves[writer].stage;
      if (same_stage && has_all_siblings_of(leaves[touch.leaf], leaves[writer])) return true;
      touch.covered_in = std::min(touch.covered_in, leaves[writer].stage);
      return false;
    });
  }

  const Ordering& ordering_;
  std::vector<History> history_;  // by place
  std::vector<Order> orders_;
  std::vector<std::size_t> first_;  // of each leaf in orders_
  std::vector<std::uint32_t> candidates_;
  std::vector<std::uint32_t> seen_;  // by leaf: the last later leaf that met it
  std::vector<std::uint32_t> stack_;
  std::int64_t steps_ = 0;
};

std::optional<std::vector<Order>> Ordering::reduced() const {
  if (!complete_) return std::nullopt;
  return Reduction(*this).run();
}

}  // namespace eagle::view
