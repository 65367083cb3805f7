#include "engine/run/cpu/bound_group.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/kernel/float_environment.h"
#include "engine/run/cpu/share.h"
#include "engine/run/cpu/team.h"

namespace eagle::run {
namespace {

// What a function loads and stores of a block takes about so much of the first-level cache: the next
// function finds it there. Measured with chains of 16: see docs/design/executor.md.
constexpr std::int64_t block_bytes = 16 << 10;
constexpr std::int64_t least_block = 256;
constexpr std::int64_t most_block = 4096;

// What was stored past the caches is seen by whoever sees what this thread does next.
void fence_streams() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace

BoundGroup::BoundGroup(std::vector<Function> functions, std::optional<SharedLaunch> shared,
                       const GroupRules& rules)
    : shared_(std::move(shared)), inline_work_(rules.inline_work) {
  std::int64_t widest = 1;
  std::int64_t lanes = 1;
  double work = 0;
  functions_.reserve(functions.size());
  for (Function& function : functions) {
    widest = std::max(widest, function.cost.bytes);
    bytes_ += function.cost.bytes;
    work += function.cost.work;
    loops_ |= function.cost.loops;
    lanes = std::max<std::int64_t>(lanes, function.launch.code().lanes());
    functions_.push_back(std::move(function.launch));
  }
  times_ = std::vector<TickSum>(functions_.size());
  samples_ = functions_.front().samples();
  bytes_ *= samples_;
  work_ = work * static_cast<double>(samples_);
  const std::int64_t fits = block_bytes / widest / share_grain * share_grain;
  // A sample of a loop may take any time.
  if (loops_) chunk_ = Chunk(lanes);
  // What a function stores for the next one is to be in the cache.
  if (functions_.size() == 1 && !shared_) {
    BoundLaunch& only = functions_.front();
    streams_ = only.streamable_bytes() > 0 && only.streamable_bytes() >= rules.streamed_from;
    if (streams_) only.stream();
  }
  block_ = functions_.size() == 1 ? samples_ : std::clamp(fits, least_block, most_block);
}

double BoundGroup::work() const { return loops_ ? std::numeric_limits<double>::infinity() : work_; }

int BoundGroup::threads(int team) const {
  if (work_ <= inline_work_) return 1;
  return static_cast<int>(std::min<std::int64_t>(team, (samples_ + share_grain - 1) / share_grain));
}

// One block through all functions, or those that are left of it. A thread that looks at its slice within the
// block leaves it between two functions.
bool BoundGroup::run_block(Range block, bool long_block, bool measures, const Piece& piece,
                           Place& place) const {
  while (place.function < functions_.size()) {
    const Ticks began = measures ? ticks_now() : 0;
    place.counts += functions_[place.function]
                        .run({.begin = block.begin, .end = block.end, .control = piece.control})
                        .counts;
    if (measures) times_[place.function].add(ticks_now() - began);
    ++place.function;
    // What is left of a loop that was cancelled is nothing to go on with.
    if (place.counts.cut_short > 0) return false;
    if (long_block && place.function < functions_.size() && piece.slice.over()) return false;
  }
  place.function = 0;
  return true;
}

// Chunk after chunk, at least one, until the share is done or the slice is over.
void BoundGroup::run_share(Range share, bool learns, bool measures, const Piece& piece, Place& place) const {
  const std::int64_t samples = share.end - share.begin;
  while (place.done < samples) {
    const std::int64_t size = piece.slice.least() ? chunk_.least() : chunk_.size();
    // A block that was left is gone on with as it was cut.
    const std::int64_t stop = place.function > 0 ? place.block_end : std::min(place.done + size, samples);
    const bool watch = learns && place.function == 0 && chunk_.watch(samples);
    const Ticks began = watch ? ticks_now() : 0;
    const std::int64_t first = place.done;
    bool whole = true;
    while (place.done < stop && whole) {
      place.block_end = std::min(place.done + block_, stop);
      whole = run_block({share.begin + place.done, share.begin + place.block_end}, stop - first <= block_,
                        measures, piece, place);
      if (whole) place.done = place.block_end;
    }
    if (watch) chunk_.took(stop - first, seconds_of(ticks_now() - began));
    if (!whole || (place.done < samples && piece.slice.over())) break;
  }
  if (streams_) fence_streams();
}

bool BoundGroup::run_in_place(const Piece& piece, Place& place) const {
  if (shared_) {
    const Ticks began = ticks_now();
    Piece whole = piece;
    Place own;
    Progress progress;
    whole.places = {&own, 1};
    whole.slice = {};
    place.counts += shared_->step(functions_.front(), whole, 0, progress).counts;
    if (piece.measured) times_.front().add(ticks_now() - began);
    return true;
  }
  run_share({0, samples_}, false, piece.measured, piece, place);
  return place.done == samples_;
}

KernelCounts BoundGroup::run(const Piece& piece, Progress& progress) const {
  if (shared_) {
    Piece fitting = piece;
    fitting.spaces = piece.spaces.first(static_cast<std::size_t>(threads(piece.team)));
    const Ticks began = ticks_now();
    const KernelCounts counts = shared_->step(functions_.front(), fitting, 0, progress).counts;
    if (piece.measured) times_.front().add(ticks_now() - began);
    return counts;
  }
  const int shares = threads(piece.team);
  const std::span places = piece.places.first(static_cast<std::size_t>(shares));
  if (!std::exchange(progress.left, false)) std::fill(places.begin(), places.end(), Place());
  run_shares(shares, [&](int share) {
    run_share(share_of(samples_, share, shares), share == 0, share == 0 && piece.measured, piece,
              places[static_cast<std::size_t>(share)]);
  });
  KernelCounts counts;
  for (int share = 0; share < shares; ++share) {
    Place& place = places[static_cast<std::size_t>(share)];
    const Range all = share_of(samples_, share, shares);
    progress.left |= place.done < all.end - all.begin;
    counts += std::exchange(place.counts, {});
  }
  return counts;
}

}  // namespace eagle::run
