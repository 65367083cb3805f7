#include "engine/run/cpu/bound_reduce.h"

#include <omp.h>

#include <algorithm>
#include <string>

#include "engine/kernel/float_environment.h"
#include "engine/kernel/names.h"
#include "engine/run/cpu/share.h"

namespace eagle::run {
namespace {

StatusOr<std::byte*> address_of(const graph::NamedView& named, std::string_view argument,
                                std::span<const PlaneMemory> planes) {
  std::byte* data = planes[named.view.plane].data;
  if (data != nullptr) return data + named.view.offset;
  return Status(Reason::private_array,
                "reduce: " + std::string(argument) + " " + kernel::quote_name(named.name) + " (plane " +
                    std::to_string(named.view.plane) +
                    ") lies in memory that only the client can reach; make the array with "
                    "the session, or run in process");
}

}  // namespace

StatusOr<BoundReduce> BoundReduce::bind(const graph::Reduce& reduce, std::span<const PlaneMemory> planes,
                                        int team) {
  BoundReduce bound;
  EAGLE_ASSIGN_OR_RETURN(bound.x_, address_of(reduce.x, "x", planes));
  EAGLE_ASSIGN_OR_RETURN(bound.out_, address_of(reduce.out, "out", planes));
  bound.reducer_ = &reducer_for({reduce.op, reduce.scalar, reduce.compensated});
  bound.item_bytes_ = reduce.x.view.item_bytes;
  bound.rows_ = reduce.rows;
  bound.samples_ = reduce.samples;
  const std::int64_t leaf = bound.reducer_->leaf_samples();
  bound.leaves_per_row_ = reduce.samples / leaf + (reduce.samples % leaf != 0 ? 1 : 0);
  const bool small = reduce.rows * reduce.samples <= inline_reduce_bytes / bound.item_bytes_;
  bound.team_ = small ? 1 : team;
  if (bound.team_ > 1) bound.pieces_.resize(2 * static_cast<std::size_t>(team));
  return bound;
}

void BoundReduce::run() {
  if (team_ == 1 || omp_in_parallel()) return run_in_place();
  for (Piece& piece : pieces_) {
    piece.row = -1;
    piece.partial.clear();
  }
#pragma omp parallel num_threads(team_)
  {
    const kernel::FloatEnvironment environment;
    const int thread = omp_get_thread_num();
    // The same leaves each time: a thread then still has them in its cache. The team may be smaller than
    // asked for.
    const Range share = even_share(rows_ * leaves_per_row_, thread, omp_get_num_threads());
    run_share(share.begin, share.end, std::span<Piece, 2>(&pieces_[2 * static_cast<std::size_t>(thread)], 2));
  }
  join_pieces();
}

void BoundReduce::run_in_place() {
  const kernel::FloatEnvironment environment;
  for (std::int64_t row = 0; row < rows_; ++row) {
    Partial partial;
    reducer_->append(partial, x_ + row * samples_ * item_bytes_, 0, samples_);
    reducer_->finish(partial, out_ + row * item_bytes_);
  }
}

// Leaves [first, last) of all, row after row. A row that lies in them whole is finished at once.
void BoundReduce::run_share(std::int64_t first, std::int64_t last, std::span<Piece, 2> pieces) const {
  std::size_t piece = 0;
  while (first < last) {
    const std::int64_t row = first / leaves_per_row_;
    const std::int64_t row_begin = row * leaves_per_row_;
    const std::int64_t end = std::min(last, row_begin + leaves_per_row_);
    const std::int64_t base = (first - row_begin) * reducer_->leaf_samples();
    const std::int64_t stop = std::min((end - row_begin) * reducer_->leaf_samples(), samples_);
    const std::byte* x = x_ + (row * samples_ + base) * item_bytes_;
    if (end - first == leaves_per_row_) {
      Partial whole;
      reducer_->append(whole, x, base, stop - base);
      reducer_->finish(whole, out_ + row * item_bytes_);
    } else {
      pieces[piece].row = row;
      reducer_->append(pieces[piece].partial, x, base, stop - base);
      ++piece;
    }
    first = end;
  }
}

// Pieces lie in the order of threads, and so of samples.
void BoundReduce::join_pieces() {
  const kernel::FloatEnvironment environment;
  Piece* open = nullptr;
  const auto finish = [&] {
    if (open != nullptr) reducer_->finish(open->partial, out_ + open->row * item_bytes_);
  };
  for (Piece& piece : pieces_) {
    if (piece.row < 0) continue;
    if (open != nullptr && open->row == piece.row) {
      reducer_->append(open->partial, piece.partial);
      continue;
    }
    finish();
    open = &piece;
  }
  finish();
}

}  // namespace eagle::run
