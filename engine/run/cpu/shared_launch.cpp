#include "engine/run/cpu/shared_launch.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/kernel/float_environment.h"
#include "engine/kernel/work.h"
#include "engine/run/cpu/share.h"
#include "engine/run/cpu/team.h"
#include "engine/run/cpu/tile_line.h"
#include "engine/run/cpu/turn.h"

namespace eagle::run {
namespace {

// Values and notes of a tile take about so much: they stay in the second-level cache until they are added.
constexpr std::int64_t tile_bytes = 256 << 10;
constexpr std::int64_t most_tile_samples = 16'384;
// Below so many threads one turn is enough: while one adds, the others compute. Sorting by stripe costs about
// as much as adding.
constexpr int threads_for_stripes = 4;
constexpr std::size_t most_stripes = 64;
// How long a thread waits for its turn without sleeping. Adding the notes of one tile takes tens of
// microseconds: who sleeps through that comes late for the next one, too.
constexpr double least_patience_s = 2e-6;
constexpr double most_patience_s = 50e-6;
// Notes that come one after the other have so many words of room.
constexpr std::int64_t words_of_notes = 32 << 10;

std::int64_t rounded_up(std::int64_t value, std::int64_t grain) {
  return (value + grain - 1) / grain * grain;
}

void fill_with(std::byte* values, std::int64_t item_bytes, std::uint64_t bits, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(values + i * item_bytes, &bits, static_cast<std::size_t>(item_bytes));
}

}  // namespace

void ThreadSpace::Needs::cover(const Needs& other) {
  bytes = std::max(bytes, other.bytes);
  planes = std::max(planes, other.planes);
  ops = std::max(ops, other.ops);
  accumulators = std::max(accumulators, other.accumulators);
  begins = std::max(begins, other.begins);
  partials = std::max(partials, other.partials);
}

void ThreadSpace::make_room(const Needs& needs) {
  bytes.resize(needs.bytes);
  planes.resize(needs.planes);
  notes.resize(2 * needs.ops);
  columns.resize(needs.ops);
  sorted.resize(needs.accumulators);
  begins.resize(needs.begins);
  partials.resize(needs.partials);
}

std::vector<ThreadSpace> ThreadSpace::for_team(int threads, const Needs& needs) {
  if (needs.planes == 0) return {};  // every shared launch has arguments
  std::vector<ThreadSpace> spaces(static_cast<std::size_t>(threads));
  for (ThreadSpace& space : spaces) space.make_room(needs);
  return spaces;
}

std::optional<SharedLaunch> SharedLaunch::of(const graph::KernelLaunch& launch,
                                             std::shared_ptr<const kernel::Kernel> kernel,
                                             const BoundLaunch& bound) {
  if (!kernel->shares()) return std::nullopt;
  SharedLaunch shared;
  shared.patience_ = std::make_unique<Patience>(least_patience_s, most_patience_s);
  shared.kernel_ = std::move(kernel);
  shared.additions_ = kernel::additions_of(*shared.kernel_);
  shared.some_may_not_run_ = shared.kernel_->terminated_argument() >= 0 || kernel::has_loops(*shared.kernel_);
  std::int64_t bytes = shared.additions_.by_sample ? shared.additions_.bytes_per_sample : 0;
  std::vector<std::size_t> place(shared.kernel_->arguments.size());
  for (std::size_t a = 0; a < shared.kernel_->arguments.size(); ++a) {
    const kernel::Argument& argument = shared.kernel_->arguments[a];
    if (argument.role == kernel::Role::reduce) {
      const std::int64_t item = kernel::bytes_of(argument.type.scalar);
      shared.reduced_.push_back({a, argument.reduce, argument.type.scalar,
                                 &reducer_for({argument.reduce, argument.type.scalar}), item,
                                 kernel::neutral_bits(argument.reduce, argument.type.scalar)});
      bytes += item;
    } else if (argument.role == kernel::Role::accum) {
      const Cells cells{bound.plane(a), launch.arguments[a].layout.component_stride,
                        argument.type.components(), argument.type.scalar};
      place[a] = shared.noted_.size();
      shared.noted_.push_back({cells, {}});
    }
  }
  for (std::size_t op = 0; op < shared.additions_.sites.size(); ++op) {
    NotedCells& noted = shared.noted_[place[shared.additions_.sites[op].argument]];
    noted.ops.push_back(op);
    shared.cells_.push_back(noted.cells);
  }
  // A partial reduction begins at a whole number of leaves.
  const std::int64_t wanted = std::min(tile_bytes / std::max<std::int64_t>(bytes, 1), most_tile_samples);
  shared.tile_samples_ = std::max(wanted / plain_leaf_samples, std::int64_t{1}) * plain_leaf_samples;
  return shared;
}

// How many stripes the elements are dealt out to; 1: they are not. A power of two.
std::size_t SharedLaunch::stripes(int threads) const {
  if (threads < threads_for_stripes || !additions_.by_sample || cells_.empty()) return 1;
  return std::min(std::bit_floor(static_cast<std::size_t>(threads)), most_stripes);
}

ThreadSpace::Needs SharedLaunch::needs(int threads) const {
  ThreadSpace::Needs needs;
  std::int64_t bytes = 8 * tile_samples_ * static_cast<std::int64_t>(reduced_.size());
  const std::size_t parts = stripes(threads);
  if (additions_.by_sample) {
    for (const Cells& cells : cells_)
      bytes += tile_samples_ * (8 + 8 * cells.components) * (parts > 1 ? 2 : 1);
  } else {
    bytes += 8 * words_of_notes;
  }
  needs.bytes = static_cast<std::size_t>(bytes);
  needs.planes = kernel_->arguments.size();
  needs.ops = additions_.sites.size();
  needs.partials = reduced_.size();
  if (parts > 1) {
    needs.accumulators = noted_.size();
    needs.begins = noted_.size() * (parts + 1);
  }
  return needs;
}

// What the threads of one piece of a step have in common.
struct SharedLaunch::Team {
  const BoundLaunch& bound;
  const Piece& piece;
  std::int64_t tiles = 0;
  std::int64_t first_step = 0;
  TileLine line;
  std::size_t stripes = 1;
  std::array<Turn, most_stripes> turns = {};  // of each stripe
};

// The samples of one tile, and who runs them.
struct SharedLaunch::Tile {
  Team& team;
  ThreadSpace& space;
  std::int64_t number = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t words = 0;  // of notes that are left, where they come one after the other
  bool cut_short = false;
};

struct SharedLaunch::Call : codegen::KernelCall {
  const SharedLaunch* launch = nullptr;
  Tile* tile = nullptr;
};

BoundLaunch::Outcome SharedLaunch::step(const BoundLaunch& bound, const Piece& piece, std::int64_t first_step,
                                        Progress& progress) const {
  const std::int64_t tiles = rounded_up(bound.samples(), tile_samples_) / tile_samples_;
  const int threads = static_cast<int>(std::min(static_cast<std::int64_t>(piece.spaces.size()), tiles));
  BoundLaunch::Outcome total;
  if (threads == 0) return total;
  const std::span places = piece.places.first(static_cast<std::size_t>(threads));
  const bool first = !std::exchange(progress.left, false);
  if (first) std::fill(places.begin(), places.end(), Place());
  Team team{bound, piece, tiles, first_step, TileLine(places[0].done, tiles)};
  if (may_have_team()) team.stripes = stripes(threads);
  for (Turn& turn : team.turns) turn.begin_at(places[0].done);
  for (ThreadSpace& space : piece.spaces) prepare(bound, space, team.stripes, first);
  const auto add = [&](const BoundLaunch::Outcome& mine) {
#pragma omp critical(eagle_shared_launch)
    total += mine;
  };
  if (cells_.empty()) {
    run_shares(threads, [&](int share) { add(reduce_share(team, share, threads)); });
    for (int share = 0; share < threads; ++share) {
      const Range all = even_share(tiles, share, threads);
      progress.left |= places[static_cast<std::size_t>(share)].done < all.end - all.begin;
    }
  } else {
    run_team(threads, [&](int thread, int of) { add(add_tiles(team, thread, of)); });
    places[0].done = team.line.end();
    progress.left = places[0].done < tiles;
  }
  // A step that a cancel cut short was not taken: the reductions hold what the last whole one left.
  if (!progress.left && total.counts.cut_short == 0) {
    store_reductions(team);
  } else if (total.counts.cut_short > 0) {
    progress.left = false;
  }
  return total;
}

// Cuts the space into the parts that compiled code writes to: values first, then notes.
void SharedLaunch::prepare(const BoundLaunch& bound, ThreadSpace& space, std::size_t parts,
                           bool first) const {
  std::byte* next = space.bytes.data();
  const auto take = [&](std::int64_t bytes) {
    std::byte* part = next;
    next += bytes;
    return part;
  };
  std::copy(bound.planes().begin(), bound.planes().end(), space.planes.begin());
  for (const Reduced& reduced : reduced_) space.planes[reduced.argument] = take(8 * tile_samples_);
  if (first) {
    for (Partial& partial : space.partials) partial.clear();
  }
  if (!additions_.by_sample) {
    space.notes[0] = take(8 * words_of_notes);
    return;
  }
  for (std::size_t op = 0; op < cells_.size(); ++op) {
    space.notes[2 * op] = take(8 * tile_samples_);
    space.notes[2 * op + 1] = take(8 * tile_samples_ * cells_[op].components);
  }
  if (parts == 1) return;
  const std::span<std::int64_t> begins(space.begins);
  for (std::size_t a = 0; a < noted_.size(); ++a) {
    const auto most = tile_samples_ * static_cast<std::int64_t>(noted_[a].ops.size());
    SortedNotes& sorted = space.sorted[a];
    sorted.elements = reinterpret_cast<std::int64_t*>(take(8 * most));
    sorted.component_stride = 8 * most;
    sorted.values = take(8 * most * noted_[a].cells.components);
    sorted.begins = begins.subspan(a * (parts + 1), parts + 1);
  }
}

// Without accumulators a share has tiles in a row, whose partial reductions are one. Else tiles go round, so
// that all threads move through the samples together and hardly wait for their turn. Both maps are the same
// each time.
BoundLaunch::Outcome SharedLaunch::reduce_share(Team& team, int share, int shares) const {
  ThreadSpace& space = team.piece.spaces[static_cast<std::size_t>(share)];
  Place& place = team.piece.places[static_cast<std::size_t>(share)];
  const Range all = even_share(team.tiles, share, shares);
  BoundLaunch::Outcome total;
  while (all.begin + place.done < all.end) {
    Tile tile = tile_of(team, space, all.begin + place.done);
    total += run_tile(tile);
    reduce_tile(tile, space);
    ++place.done;
    if (team.piece.slice.over()) break;
  }
  return total;
}

BoundLaunch::Outcome SharedLaunch::add_tiles(Team& team, int thread, int threads) const {
  ThreadSpace& space = team.piece.spaces[static_cast<std::size_t>(thread)];
  BoundLaunch::Outcome total;
  const std::int64_t first = team.line.first();
  std::int64_t number = first + (thread - first % threads + threads) % threads;
  for (; team.line.begin(number); number += threads) {
    Tile tile = tile_of(team, space, number);
    total += run_tile(tile);
    add_in_turn(tile);
    if (team.piece.slice.over()) team.line.close();
  }
  return total;
}

SharedLaunch::Tile SharedLaunch::tile_of(Team& team, ThreadSpace& space, std::int64_t number) const {
  const std::int64_t begin = number * tile_samples_;
  return {team, space, number, begin, std::min(begin + tile_samples_, team.bound.samples())};
}

BoundLaunch::Outcome SharedLaunch::run_tile(Tile& tile) const {
  clear(tile);
  Call call;
  static_cast<codegen::KernelCall&>(call) = tile.team.bound.call_for({.begin = tile.begin,
                                                                      .end = tile.end,
                                                                      .first_step = tile.team.first_step,
                                                                      .control = tile.team.piece.control});
  call.launch = this;
  call.tile = &tile;
  call.planes = tile.space.planes.data();
  call.flush = flush;
  if (additions_.by_sample) {
    call.notes = tile.space.notes.data();
    call.notes_capacity = tile_samples_;
  } else {
    call.notes = tile.space.notes[0];
    call.notes_capacity = words_of_notes;
  }
  const BoundLaunch::Outcome outcome = tile.team.bound.run(call);
  tile.words = call.notes_used;
  tile.cut_short = outcome.counts.cut_short > 0;
  return outcome;
}

// What samples leave as it is that do not run, or do not come to an op.
void SharedLaunch::clear(const Tile& tile) const {
  const std::int64_t samples = tile.end - tile.begin;
  if (some_may_not_run_) {
    for (const Reduced& reduced : reduced_)
      fill_with(tile.space.planes[reduced.argument], reduced.item_bytes, reduced.neutral, samples);
  }
  if (!additions_.by_sample) return;
  for (std::size_t op = 0; op < cells_.size(); ++op) {
    if (some_may_not_run_ || additions_.sites[op].conditional)
      std::memset(tile.space.notes[2 * op], 0xff, static_cast<std::size_t>(8 * samples));
  }
}

// Hands in what the tile made, after all earlier tiles: stripe by stripe, so that the next tile can follow in
// those that this one has left.
void SharedLaunch::add_in_turn(Tile& tile) const {
  Team& team = tile.team;
  if (team.stripes > 1) sort_notes(tile);
  for (std::size_t stripe = 0; stripe < team.stripes; ++stripe) {
    team.turns[stripe].wait_for(tile.number, *patience_);
    if (stripe == 0) reduce_tile(tile, team.piece.spaces[0]);
    if (team.stripes == 1) {
      add_notes(tile);
    } else if (!tile.cut_short) {
      for (std::size_t a = 0; a < noted_.size(); ++a)
        add_stripe(noted_[a].cells, tile.space.sorted[a], stripe);
    }
    team.turns[stripe].pass_on(tile.number);
  }
}

// The notes of an accumulator, op by op.
std::span<const NoteColumn> SharedLaunch::columns_of(const Tile& tile, const NotedCells& noted) const {
  const std::vector<std::byte*>& notes = tile.space.notes;
  std::vector<NoteColumn>& columns = tile.space.columns;
  std::size_t count = 0;
  for (const std::size_t op : noted.ops) {
    columns[count++] = {reinterpret_cast<const std::int64_t*>(notes[2 * op]), notes[2 * op + 1],
                        tile_samples_ * kernel::bytes_of(noted.cells.scalar)};
  }
  return std::span(columns).first(count);
}

// A step that a cancel cut short was not taken, so its notes are not added.
void SharedLaunch::add_notes(const Tile& tile) const {
  if (tile.cut_short) return;
  if (!additions_.by_sample) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(tile.space.notes[0]);
    add_words(cells_, {words, static_cast<std::size_t>(tile.words)});
    return;
  }
  for (const NotedCells& noted : noted_) {
    if (!noted.ops.empty()) add_columns(noted.cells, columns_of(tile, noted), tile.end - tile.begin);
  }
}

void SharedLaunch::sort_notes(const Tile& tile) const {
  for (std::size_t a = 0; a < noted_.size(); ++a)
    sort_columns(noted_[a].cells, columns_of(tile, noted_[a]), tile.end - tile.begin, tile.space.sorted[a]);
}

// Called by compiled code when its notes fill their room. When it is the tile's turn, it stays so until the
// tile is done.
void SharedLaunch::flush(codegen::KernelCall* call) {
  Tile& tile = *static_cast<Call*>(call)->tile;
  const SharedLaunch& launch = *static_cast<Call*>(call)->launch;
  tile.team.turns[0].wait_for(tile.number, *launch.patience_);
  tile.words = call->notes_used;
  launch.add_notes(tile);
  call->notes_used = 0;
}

// Appends the tile's values to the reductions of a space.
void SharedLaunch::reduce_tile(const Tile& tile, ThreadSpace& into) const {
  for (std::size_t r = 0; r < reduced_.size(); ++r) {
    const std::byte* values = tile.space.planes[reduced_[r].argument];
    reduced_[r].reducer->append(into.partials[r], values, tile.team.bound.first_sample() + tile.begin,
                                tile.end - tile.begin);
  }
}

// Threads had tiles in rising order, or all appended to the first space.
void SharedLaunch::store_reductions(Team& team) const {
  const kernel::FloatEnvironment environment;
  for (std::size_t r = 0; r < reduced_.size(); ++r) {
    Partial& all = team.piece.spaces[0].partials[r];
    for (const ThreadSpace& later : team.piece.spaces.subspan(1))
      reduced_[r].reducer->append(all, later.partials[r]);
    reduced_[r].reducer->finish(all, team.bound.plane(reduced_[r].argument));
  }
}

}  // namespace eagle::run
