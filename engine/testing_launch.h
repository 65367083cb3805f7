// Memory for whatever a description declares, with guards around it; for fuzz targets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/run/built_graph.h"

namespace eagle::testing {

// The planes of a description, each between two guards that nothing may touch: compiled code is not
// instrumented, so this is how a store out of bounds is seen.
class GuardedPlanes {
public:
  static constexpr std::uint64_t most_bytes = 1 << 20;

  // Whether all planes together are at most `most_bytes`.
  template <typename Message>
  static bool fits(const Message& description) {
    std::uint64_t total = 0;
    for (const auto& plane : description.planes()) {
      if (plane.bytes() > most_bytes || (total += plane.bytes()) > most_bytes) return false;
    }
    return true;
  }

  // Filled with small whole numbers, which are good sizes, cells and masks of every type.
  template <typename Message>
  explicit GuardedPlanes(const Message& description) {
    for (const auto& plane : description.planes()) {
      std::vector<std::byte>& bytes = bytes_.emplace_back(plane.bytes() + 2 * guard_bytes, guard);
      for (std::uint64_t i = 0; i < plane.bytes(); ++i)
        bytes[guard_bytes + i] = std::byte(i % 8 == 0 ? i / 8 % 3 : 0);
    }
    for (std::vector<std::byte>& bytes : bytes_) {
      memory_.push_back({bytes.data() + guard_bytes, bytes.size() - 2 * guard_bytes});
    }
  }

  [[nodiscard]] std::span<const run::PlaneMemory> memory() const { return memory_; }
  [[nodiscard]] bool guards_stand() const {
    const auto stand = [](const std::vector<std::byte>& bytes) {
      const auto is_guard = [](std::byte value) { return value == guard; };
      return std::all_of(bytes.begin(), bytes.begin() + guard_bytes, is_guard) &&
             std::all_of(bytes.end() - guard_bytes, bytes.end(), is_guard);
    };
    return std::all_of(bytes_.begin(), bytes_.end(), stand);
  }
  friend bool operator==(const GuardedPlanes& a, const GuardedPlanes& b) { return a.bytes_ == b.bytes_; }

private:
  static constexpr std::byte guard{0xa5};
  static constexpr std::ptrdiff_t guard_bytes = 256;

  std::vector<std::vector<std::byte>> bytes_;
  std::vector<run::PlaneMemory> memory_;
};

}  // namespace eagle::testing
