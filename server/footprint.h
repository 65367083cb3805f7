// Footprint: which bytes of which planes a launch or a run reads and writes, to tell whether two may take
// turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/graph/edges.h"
#include "engine/plane/view.h"

namespace eagle::server {

class PlaneBytes;

// Immutable once made; any thread.
class Footprint {
public:
  // Of more views than this on one plane the bounding bytes stand for all.
  static constexpr std::size_t most_views = 64;

  // `planes`: what they hold, by their index in the description that the views are of; null for what nobody
  // else sees. Planes of several sessions may hold the same bytes.
  static std::shared_ptr<const Footprint> of(std::span<const graph::Touches> touches,
                                             std::span<const PlaneBytes* const> planes);

  // Of search, planes that both name and pairs of views counting too: for two footprints, and for one with
  // all that are asked about it in a row.
  static constexpr std::int64_t most_steps = 20'000;
  static constexpr std::int64_t most_steps_in_a_row = 400'000;

  // Whether one writes a byte that the other touches. "Yes" where it would be long to tell. Takes what it
  // needs from `steps`; where none are left, "yes" unless they name no plane in common.
  [[nodiscard]] bool conflicts_with(const Footprint& other, std::int64_t& steps) const;
  [[nodiscard]] bool conflicts_with(const Footprint& other) const {
    std::int64_t steps = most_steps;
    return conflicts_with(other, steps);
  }

private:
  struct Side {
    plane::Extent bytes;  // of all views; empty where there are none
    std::vector<plane::View> views;
    bool exact = true;  // `views` is all of them
    void add(const plane::View& view);
  };
  struct Use {
    const PlaneBytes* plane = nullptr;  // a name: never followed
    Side reads;
    Side writes;
  };
  using Uses = std::vector<Use>;
  static Uses::const_iterator reach(Uses::const_iterator from, Uses::const_iterator end,
                                    const PlaneBytes* plane);
  static bool meet(const Side& a, const Side& b, std::int64_t& steps);
  [[nodiscard]] bool meets(const Footprint& other, std::int64_t& steps) const;

  Uses uses_;  // by plane
};

}  // namespace eagle::server
