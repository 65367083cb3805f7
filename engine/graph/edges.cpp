#include "engine/graph/edges.h"

#include <algorithm>
#include <tuple>

#include "engine/graph/find_edges.h"
#include "engine/graph/leaf_maker.h"
#include "engine/graph/list_order.h"
#include "engine/graph/meetings.h"

namespace eagle::graph {
namespace {

// Hits between two questions whether anybody still wants them.
constexpr std::size_t now_and_then = 4096;

struct Hit {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint32_t rank = 0;  // before the kind and index, which follow from it
  std::uint32_t index = 0;
  Hazard kind = Hazard::raw;
};

// Later leaves that are not siblings of the source: all but those beside it.
void collect(const std::vector<Leaf>& leaves, const Side& side, std::vector<Hit>& hits) {
  const std::vector<Touch>& all = *side.destinations;
  const auto from = [&](std::uint32_t leaf) {
    return std::lower_bound(all.begin(), all.end(), leaf,
                            [](const Touch& touch, std::uint32_t first) { return touch.leaf < first; });
  };
  for (const Touch& source : *side.sources) {
    const std::uint32_t order = rank(leaves[source.leaf], side.kind, source.index);
    const auto add = [&](auto first, auto last) {
      for (; first < last; ++first)
        hits.push_back({source.leaf, first->leaf, order, source.index, side.kind});
    };
    auto next = from(source.leaf + 1);
    for (const Leaf::Range& beside : leaves[source.leaf].beside) {
      add(next, from(beside.first));
      next = from(beside.last);
    }
    add(next, all.end());
  }
}

StatusOr<std::vector<Edge>> edges_among(const std::vector<Leaf>& all, const GivenUp& given_up) {
  const std::vector<Place> places = places_of(all);
  std::vector<Hit> hits;
  Work work;
  Status wanted;
  for_each_meeting(places, work, [&](const Place& a, const Place& b) {
    wanted = still_wanted(given_up);
    if (!wanted.ok()) work.left = 0;
    for (const Side& side : sides_of(a, b)) {
      if (wanted.ok()) collect(all, side, hits);
    }
  });
  EAGLE_RETURN_IF_ERROR(wanted);
  std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) {
    return std::tie(a.source, a.destination, a.rank) < std::tie(b.source, b.destination, b.rank);
  });

  std::vector<Edge> out;
  std::size_t pair = 0;  // where the edges of the current pair of leaves begin
  for (std::size_t i = 0; const Hit& hit : hits) {
    if (i++ % now_and_then == 0) EAGLE_RETURN_IF_ERROR(still_wanted(given_up));
    if (pair < out.size() && (out[pair].source != hit.source || out[pair].destination != hit.destination)) {
      pair = out.size();
    }
    const Touches& touches = all[hit.source].touches;
    const std::string& name = (hit.kind == Hazard::war ? touches.reads : touches.writes)[hit.index].name;
    const bool listed =
        std::any_of(out.begin() + static_cast<std::ptrdiff_t>(pair), out.end(),
                    [&](const Edge& edge) { return edge.kind == hit.kind && edge.plane == name; });
    if (!listed) out.push_back({hit.source, hit.destination, name, hit.kind});
  }
  return out;
}

// The touch at which those of leaf `leaf` and later ones begin.
std::vector<Touch>::const_iterator from_leaf(const std::vector<Touch>& touches, std::uint32_t leaf) {
  return std::lower_bound(touches.begin(), touches.end(), leaf,
                          [](const Touch& touch, std::uint32_t first) { return touch.leaf < first; });
}

// The last leaf before `leaf` that writes the place, or 0.
std::uint32_t last_write(const Place& place, std::uint32_t leaf) {
  const auto next = from_leaf(place.writes, leaf);
  return next == place.writes.begin() ? 0 : std::prev(next)->leaf;
}

// What comes at one place before the touches of another that it meets. Whatever lies before a later write of
// either place comes before that write, which comes before the touch itself.
void order(const Place& earlier, const Place& later,
           std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
  const auto add = [&](const std::vector<Touch>& sources, const std::vector<Touch>& destinations) {
    for (const Touch& touch : destinations) {
      const std::uint32_t since = std::max(last_write(earlier, touch.leaf), last_write(later, touch.leaf));
      for (auto source = from_leaf(sources, since); source != sources.end() && source->leaf < touch.leaf;
           ++source)
        pairs.emplace_back(source->leaf, touch.leaf);
    }
  };
  add(earlier.writes, later.reads);
  add(earlier.writes, later.writes);
  add(earlier.reads, later.writes);
}

}  // namespace

std::string_view name_of(Hazard hazard) {
  switch (hazard) {
    case Hazard::raw:
      return "RAW";
    case Hazard::war:
      return "WAR";
    case Hazard::waw:
      return "WAW";
  }
  return "unknown";
}

std::string_view meaning_of(Hazard hazard) {
  switch (hazard) {
    case Hazard::raw:
      return "data flows";
    case Hazard::war:
      return "must wait to overwrite";
    case Hazard::waw:
      return "same output";
  }
  return "unknown";
}

bool siblings(const std::vector<Leaf>& leaves, std::uint32_t a, std::uint32_t b) {
  const auto holds_later = [&](const Leaf::Range& beside) {
    return beside.first <= std::max(a, b) && std::max(a, b) < beside.last;
  };
  return std::ranges::any_of(leaves[std::min(a, b)].beside, holds_later);
}

std::vector<Leaf> leaves(const Graph& graph) { return leaves(graph, graph.stages); }

std::vector<Leaf> leaves(const Graph& graph, const std::vector<Stage>& stages) {
  return LeafMaker(graph).leaves(stages);
}

std::vector<Edge> edges(const Graph& graph) { return *find_edges(graph, {}); }

StatusOr<std::vector<Edge>> find_edges(const Graph& graph, const GivenUp& given_up) {
  return edges_among(leaves(graph), given_up);
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> list_order(const std::vector<Leaf>& all) {
  const std::vector<Place> places = places_of(all);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  Work work;
  for_each_meeting(places, work, [&](const Place& a, const Place& b) {
    order(a, b, pairs);
    if (&a != &b) order(b, a, pairs);
  });
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

}  // namespace eagle::graph
