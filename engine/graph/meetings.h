// Meetings: which planes of which leaves share bytes. The one search behind edges and races.
//
// Touches of one and the same view form a place, so that a thousand nodes on one array cost one
// comparison. Places are compared only where an interval index finds that they could meet: first by the
// columns of a common row stride (a thousand columns of one matrix never meet), else by bounding bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "engine/graph/edges.h"

namespace eagle::graph {

struct Touch {
  std::uint32_t leaf = 0;
  std::uint32_t index = 0;  // into the leaf's reads or writes
};

struct Place {
  const plane::View* view = nullptr;
  std::vector<Touch> reads;  // both ascending by (leaf, index)
  std::vector<Touch> writes;
};

// The places of all leaves, empty views excepted. They point into `leaves`; leaf numbers are indices there.
std::vector<Place> places_of(const std::vector<Leaf>& leaves);

// Overlap tests and the steps of their searches that may still be spent; without bound unless said.
struct Work {
  std::int64_t left = std::numeric_limits<std::int64_t>::max();
};

// Visits every unordered pair of places that share a byte and of which one is written, in no special order;
// a written place meets itself. Stops, and returns false, once the work is spent.
bool for_each_meeting(const std::vector<Place>& places, Work& work,
                      const std::function<void(const Place&, const Place&)>& visit);

// A meeting seen from one side: `sources` at one place come before `destinations` at the other.
struct Side {
  Hazard kind = Hazard::raw;
  const std::vector<Touch>* sources = nullptr;
  const std::vector<Touch>* destinations = nullptr;
};
// All ways in which touches of two meeting places conflict; those with nothing on one side are left out.
std::vector<Side> sides_of(const Place& a, const Place& b);

// Rank of a hazard among those between one pair of leaves, in the order in which edges are listed.
std::uint32_t rank(const Leaf& source, Hazard kind, std::uint32_t index);

}  // namespace eagle::graph
