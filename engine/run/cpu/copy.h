// Copies on the CPU: the elements of one view into another, any strides, converted where the types differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/graph/graph.h"
#include "engine/run/built_graph.h"
#include "engine/run/cpu/piece.h"
#include "engine/run/cpu/share.h"

namespace eagle::run {

// A copy of fewer bytes runs on the calling thread.
constexpr std::int64_t inline_copy_bytes = 64 << 10;

class BoundCopy {
public:
  // The copy has passed `graph::read` with these planes. PRIVATE_ARRAY for memory that this process cannot
  // reach.
  static StatusOr<BoundCopy> bind(const graph::Copy& copy, std::span<const PlaneMemory> planes);

  // Copies until all is done or the slice is over. With a team where it pays; in place inside a region.
  // Allocates nothing. The index, where there is one, is looked at when a copy begins.
  void run(const Piece& piece, Progress& progress);
  [[nodiscard]] int threads(int team) const;  // that it wants of a team

private:
  // Copies `count` elements, strides apart.
  using Row = void (*)(const BoundCopy& copy, const std::byte* source, std::byte* destination,
                       std::int64_t count);
  struct Axis {
    std::int64_t count = 1;
    std::int64_t source = 0;  // strides, bytes
    std::int64_t destination = 0;
  };

  // The index of a copy and what it moves.
  struct Index {
    const std::byte* address = nullptr;
    std::uint32_t bytes = 0;
    std::int64_t rows = 1;
    std::int64_t stride = 0;  // bytes from one row of the stack to the next
    bool into_stack = false;
  };

  BoundCopy() = default;
  void choose_row();
  void simplify(const graph::Copy& copy);
  [[nodiscard]] std::int64_t chunks() const;
  void run_chunks(std::int64_t begin, std::int64_t end) const;
  void run_share(Range chunks, const Slice& slice, Place& place) const;

  template <typename From, typename To>
  static void convert_row(const BoundCopy& copy, const std::byte* source, std::byte* destination,
                          std::int64_t count);
  template <typename From>
  static Row row_from(plane::DType to);
  static Row row_of(const graph::Copy& copy);
  static void bytes_row(const BoundCopy& copy, const std::byte* source, std::byte* destination,
                        std::int64_t count);

  std::optional<Index> index_;
  const std::byte* first_source_ = nullptr;  // of the row of number 0
  std::byte* first_destination_ = nullptr;
  const std::byte* source_ = nullptr;
  std::byte* destination_ = nullptr;
  Row row_ = nullptr;
  std::size_t item_bytes_ = 0;  // of the destination
  std::int64_t elements_ = 0;
  std::vector<Axis> outer_;  // outermost first
  Axis inner_;               // rows run along it
};

}  // namespace eagle::run
