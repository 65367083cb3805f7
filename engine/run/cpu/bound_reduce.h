// BoundReduce: a reduce node with its addresses resolved, run by a team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/status.h"
#include "engine/graph/graph.h"
#include "engine/run/built_graph.h"
#include "engine/run/cpu/piece.h"
#include "engine/run/cpu/share.h"
#include "engine/run/reduction/reduction.h"

namespace eagle::run {

// One that reads at most this much runs on the calling thread: about what memory gives while a region opens.
constexpr std::int64_t inline_reduce_bytes = 128 << 10;

// What one share of a reduction has in hand. It can be used for any, one at a time.
struct ReduceShare {
  // Of a row that the share has only a part of.
  struct Part {
    std::int64_t row = -1;
    Partial partial;
  };
  Part first;     // of the row that the share before has the beginning of
  Part last;      // of the row that it has the beginning of, but not all
  Partial whole;  // of the row in hand, where it has all of it
};

class BoundReduce {
public:
  // The node has passed `graph::read` with these planes. PRIVATE_ARRAY for memory that this process cannot
  // reach.
  static StatusOr<BoundReduce> bind(const graph::Reduce& reduce, std::span<const PlaneMemory> planes,
                                    int team);

  // Reduces until all rows are done or the slice is over. Opens a parallel region where that pays, never
  // inside another. Allocates nothing; the bits do not depend on the team. `piece` has the team of
  // `bind` and one of `shares` for each of its threads, the same ones in all pieces.
  void run(const Piece& piece, std::span<ReduceShare> shares, Progress& progress) const;
  [[nodiscard]] int threads() const { return team_; }  // that it wants

private:
  BoundReduce() = default;
  void run_share(Range leaves, const Slice& slice, ReduceShare& share, Place& place) const;
  void join_parts(std::span<ReduceShare> shares) const;

  const Reducer* reducer_ = nullptr;
  const std::byte* x_ = nullptr;
  std::byte* out_ = nullptr;
  std::int64_t item_bytes_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t samples_ = 0;  // of a row
  std::int64_t leaves_per_row_ = 0;
  int team_ = 1;
};

}  // namespace eagle::run
