// BoundReduce: a reduce node with its addresses resolved, run by a team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/graph/graph.h"
#include "engine/run/built_graph.h"
#include "engine/run/reduction/reduction.h"

namespace eagle::run {

// One that reads at most this much runs on the calling thread: about what memory gives while a region opens.
constexpr std::int64_t inline_reduce_bytes = 128 << 10;

class BoundReduce {
public:
  // The node has passed `graph::read` with these planes. PRIVATE_ARRAY for memory that this process cannot
  // reach.
  static StatusOr<BoundReduce> bind(const graph::Reduce& reduce, std::span<const PlaneMemory> planes,
                                    int team);

  // Opens a parallel region where that pays, never inside another. Allocates nothing; the bits do not depend
  // on the team. For one caller at a time.
  void run();

private:
  // What one thread made of a row that it has only a piece of: it has at most two.
  struct Piece {
    std::int64_t row = -1;
    Partial partial;
  };

  BoundReduce() = default;
  void run_in_place();
  void run_share(std::int64_t first, std::int64_t last, std::span<Piece, 2> pieces) const;
  void join_pieces();

  const Reducer* reducer_ = nullptr;
  const std::byte* x_ = nullptr;
  std::byte* out_ = nullptr;
  std::int64_t item_bytes_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t samples_ = 0;  // of a row
  std::int64_t leaves_per_row_ = 0;
  int team_ = 1;
  std::vector<Piece> pieces_;  // two a thread
};

}  // namespace eagle::run
