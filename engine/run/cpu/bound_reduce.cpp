#include "engine/run/cpu/bound_reduce.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/kernel/float_environment.h"
#include "engine/kernel/names.h"
#include "engine/run/cpu/share.h"
#include "engine/run/cpu/team.h"

namespace eagle::run {
namespace {

// Leaves between two looks at the slice: some tens of microseconds.
constexpr std::int64_t look_leaves = 128;
constexpr std::int64_t least_look_leaves = 10;  // where pieces are to be as small as they can be

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
  return bound;
}

void BoundReduce::run(const Piece& piece, std::span<ReduceShare> all_shares, Progress& progress) const {
  const std::span shares = all_shares.first(static_cast<std::size_t>(team_));
  const std::span places = piece.places.first(shares.size());
  if (!std::exchange(progress.left, false)) {
    std::fill(places.begin(), places.end(), Place());
    for (ReduceShare& share : shares) share.first.row = share.last.row = -1;
  }
  const std::int64_t leaves = rows_ * leaves_per_row_;
  run_shares(team_, [&](int share) {
    const auto at = static_cast<std::size_t>(share);
    run_share(even_share(leaves, share, team_), piece.slice, shares[at], places[at]);
  });
  for (int share = 0; share < team_; ++share) {
    const Range all = even_share(leaves, share, team_);
    progress.left |= places[static_cast<std::size_t>(share)].done < all.end - all.begin;
  }
  if (!progress.left) join_parts(shares);
}

// Leaves of all rows, row after row. A row that lies in the share whole is finished at once.
void BoundReduce::run_share(Range leaves, const Slice& slice, ReduceShare& share, Place& place) const {
  std::int64_t since_look = 0;
  while (leaves.begin + place.done < leaves.end) {
    const std::int64_t at = leaves.begin + place.done;
    const std::int64_t row = at / leaves_per_row_;
    const std::int64_t row_begin = row * leaves_per_row_;
    const std::int64_t row_end = row_begin + leaves_per_row_;
    // Cut where whole subtrees end, which are appended at once.
    const std::int64_t step = slice.least() ? least_look_leaves : look_leaves;
    const std::int64_t end =
        std::min({leaves.end, row_end, row_begin + ((at - row_begin) / step + 1) * step});
    Partial* partial = &share.whole;
    if (row_begin < leaves.begin || row_end > leaves.end) {
      ReduceShare::Part& part = row_begin < leaves.begin ? share.first : share.last;
      partial = &part.partial;
      part.row = row;
    }
    if (at == std::max(row_begin, leaves.begin)) partial->clear();
    const std::int64_t base = (at - row_begin) * reducer_->leaf_samples();
    const std::int64_t stop = std::min((end - row_begin) * reducer_->leaf_samples(), samples_);
    reducer_->append(*partial, x_ + (row * samples_ + base) * item_bytes_, base, stop - base);
    place.done = end - leaves.begin;
    if (partial == &share.whole && end == row_end) reducer_->finish(*partial, out_ + row * item_bytes_);
    since_look += end - at;
    if (since_look < step) continue;
    since_look = 0;
    if (slice.over()) return;
  }
}

// Parts lie in the order of shares, and so of samples.
void BoundReduce::join_parts(std::span<ReduceShare> shares) const {
  const kernel::FloatEnvironment environment;
  ReduceShare::Part* open = nullptr;
  const auto finish = [&] {
    if (open != nullptr) reducer_->finish(open->partial, out_ + open->row * item_bytes_);
  };
  const auto join = [&](ReduceShare::Part& part) {
    if (part.row < 0) return;
    if (open != nullptr && open->row == part.row) {
      reducer_->append(open->partial, part.partial);
      return;
    }
    finish();
    open = &part;
  };
  for (ReduceShare& share : shares) {
    join(share.first);
    join(share.last);
  }
  finish();
}

}  // namespace eagle::run
