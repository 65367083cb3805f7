// Guards and counters of loops on the CPU: cells of integers, bound to memory, looked at or written each time
// the replay comes by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/base/status.h"
#include "engine/graph/graph.h"
#include "engine/run/built_graph.h"

namespace eagle::run {

// A guard with its cells' addresses resolved.
class BoundGuard {
public:
  // The views have passed `graph::read`: one integer or bool element, inside its plane. PRIVATE_ARRAY for
  // memory that this process cannot reach.
  static StatusOr<BoundGuard> bind(const graph::Guard& guard, std::span<const PlaneMemory> planes);

  // `count` less `baseline` is not zero, or the opposite when negated. Each cell is loaded once: what a
  // client may store at the same time decides which way a launch goes, never whether it makes sense.
  [[nodiscard]] bool holds() const;

private:
  struct Cell {
    const std::byte* address = nullptr;
    plane::DType dtype = plane::DType::i64;
    std::uint32_t bytes = 0;
  };

  static StatusOr<Cell> cell(const graph::NamedView& named, std::span<const PlaneMemory> planes);
  static std::int64_t load(const Cell& cell);

  Cell count_;
  std::optional<Cell> baseline_;
  bool negated_ = false;
};

// The counter of a loop, with its address resolved.
class BoundCounter {
public:
  // The view has passed `graph::read`: one i64 or i32 element. PRIVATE_ARRAY as above.
  static StatusOr<BoundCounter> bind(const plane::View& view, std::span<const PlaneMemory> planes);

  // `count` fits: `graph::read` has seen to it.
  void store(std::int64_t count) const;

private:
  std::byte* address_ = nullptr;
  std::uint32_t bytes_ = 0;
};

}  // namespace eagle::run
