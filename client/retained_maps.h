// RetainedMaps: where planes that were released lie in this process, for the case that the daemon uses their
// memory again.
//
// The daemon keeps memory of released planes for later ones of the session, and takes it away when it is
// needed elsewhere. To map it anew costs as much as to write it, page by page; a map that is kept costs
// addresses and nothing else. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "engine/graph/graph.h"
#include "engine/plane/memory.h"

namespace eagle {

class RetainedMaps {
public:
  static constexpr std::size_t most = 32;  // maps; the oldest go
  // The daemon keeps no smaller ones.
  static constexpr std::uint64_t least_bytes = 256u << 10;

  // What is to be unmapped instead, for the caller to do so without a lock: that takes its time.
  [[nodiscard]] std::optional<plane::Memory> keep(const graph::PlaneId& plane, plane::Memory memory) {
    if (memory.bytes() < least_bytes) return memory;
    maps_.emplace_back(plane, std::move(memory));
    if (maps_.size() <= most) return {};
    plane::Memory oldest = std::move(maps_.front().second);
    maps_.pop_front();
    return oldest;
  }
  // Of the plane whose memory another one has now.
  std::optional<plane::Memory> take(const graph::PlaneId& plane, std::uint64_t bytes) {
    const auto found =
        std::find_if(maps_.begin(), maps_.end(), [&](const auto& map) { return map.first == plane; });
    if (found == maps_.end() || found->second.bytes() != bytes) return {};
    plane::Memory memory = std::move(found->second);
    maps_.erase(found);
    return memory;
  }

private:
  std::deque<std::pair<graph::PlaneId, plane::Memory>> maps_;  // the oldest first
};

}  // namespace eagle
