// Ordering: the edges that a picture draws.
//
// `graph::edges` lists every hazard, quadratic in the number of nodes where they share a plane. Here only
// those pairs of leaves are kept that no chain of other pairs implies, found in near-linear time by
// remembering, for each place, only the touches that a later write has not yet covered.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/graph/edges.h"
#include "engine/graph/meetings.h"

namespace eagle::view {

struct Order {
  std::uint32_t before = 0;  // leaf indices
  std::uint32_t after = 0;
  friend bool operator==(const Order&, const Order&) = default;
};

// Pairs that one scope may draw. A group of a thousand branches that all feed a thousand others has so many.
constexpr std::size_t most_orders = 1'000'000;

class Ordering {
public:
  // `leaves` must outlive it. Comparing their views takes from `work`.
  Ordering(const std::vector<graph::Leaf>& leaves, graph::Work& work);

  // The transitive reduction of the hazards between the leaves, sorted by (after, before). Nothing if that
  // took more work than there was or is more than `most_orders`: half an order would be a wrong one. Past a
  // bound on the search (only graphs of tens of thousands of nodes reach it) an implied pair may stay in:
  // redundant, never wrong.
  [[nodiscard]] std::optional<std::vector<Order>> reduced() const;

  // Everything that `graph::edges` says about one pair, in its order.
  [[nodiscard]] std::vector<graph::Edge> hazards(Order order) const;

private:
  friend class Reduction;
  // By index into a leaf's reads and writes: the number of the place, or no_place for an empty view.
  struct LeafPlaces {
    std::vector<std::uint32_t> reads;
    std::vector<std::uint32_t> writes;
  };
  struct Neighbour {
    std::uint32_t place = 0;
    bool covered = false;  // all its bytes are touched here too
  };
  static constexpr std::uint32_t no_place = 0xFFFFFFFF;

  [[nodiscard]] bool meets_any(std::uint32_t place, const std::vector<std::uint32_t>& others) const;

  const std::vector<graph::Leaf>& leaves_;
  bool complete_ = true;
  std::vector<LeafPlaces> places_;                  // by leaf
  std::vector<std::vector<Neighbour>> neighbours_;  // by place: those it meets, ascending
};

}  // namespace eagle::view
