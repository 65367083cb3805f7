// SharedLaunch: a launch whose samples make something together, in accumulators or reductions.
//
// Samples are run in tiles, by as many threads as there are. What a tile makes goes into the thread's own
// buffers: the values of its samples, which become a partial reduction, and notes of which element of an
// accumulator gets what. Notes are added in the order of tiles, so that every element gets its values in the
// order of samples, whoever ran them and how many at a time. All buffers are bounded; a tile with more notes
// than fit adds them when its turn has come, and goes on. From four threads on, elements are dealt out to
// stripes and tiles take turns at each stripe, so that the adding is shared too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/patience.h"
#include "engine/graph/graph.h"
#include "engine/kernel/additions.h"
#include "engine/run/cpu/bound_launch.h"
#include "engine/run/cpu/notes.h"
#include "engine/run/cpu/piece.h"
#include "engine/run/reduction/reduction.h"

namespace eagle::run {

// What one thread needs while it runs a shared launch. It can be used for any launch that it has room for,
// one at a time.
struct ThreadSpace {
  std::vector<std::byte> bytes;  // values and notes of a tile
  std::vector<std::byte*> planes;
  std::vector<std::byte*> notes;
  std::vector<NoteColumn> columns;
  std::vector<SortedNotes> sorted;  // by accumulator, where there are stripes
  std::vector<std::int64_t> begins;
  std::vector<Partial> partials;

  // Room for whatever launches need.
  struct Needs {
    std::size_t bytes = 0;
    std::size_t planes = 0;
    std::size_t ops = 0;
    std::size_t accumulators = 0;
    std::size_t begins = 0;
    std::size_t partials = 0;
    void cover(const Needs& other);
  };
  void make_room(const Needs& needs);

  // One a thread of a team, each with room for `needs`; no spaces where no launch needs any.
  static std::vector<ThreadSpace> for_team(int threads, const Needs& needs);
};

class SharedLaunch {
public:
  // `bound` is the same launch. None where the kernel shares nothing.
  static std::optional<SharedLaunch> of(const graph::KernelLaunch& launch,
                                        std::shared_ptr<const kernel::Kernel> kernel,
                                        const BoundLaunch& bound);

  // For teams of up to so many threads.
  [[nodiscard]] ThreadSpace::Needs needs(int threads) const;

  struct Reduced {
    std::size_t argument = 0;
    kernel::ReduceOp op = kernel::ReduceOp::sum;
    kernel::Scalar scalar = kernel::Scalar::f64;
    const Reducer* reducer = nullptr;
    std::int64_t item_bytes = 0;
    std::uint64_t neutral = 0;
  };
  // After a step that was not cut short, spaces[0].partials[i] has what the samples gave to number i, as a
  // part of the batch that `bound` says they are numbered in.
  [[nodiscard]] std::span<const Reduced> reductions() const { return reduced_; }

  // One step of all samples, by one thread a space, or the next piece of it: it looks at its slice between
  // tiles. The spaces of `piece` have room and are the same ones in all pieces of a step, and so are its
  // places, as many. It opens a parallel region if there are two spaces or more and the samples are worth it,
  // never inside another. Reductions are stored at the end of the last piece, of no samples nothing. What it
  // gives back is of this piece.
  BoundLaunch::Outcome step(const BoundLaunch& bound, const Piece& piece, std::int64_t first_step,
                            Progress& progress) const;

private:
  struct Team;
  struct Tile;
  struct Call;  // a KernelCall that finds its way back here

  SharedLaunch() = default;
  void prepare(const BoundLaunch& bound, ThreadSpace& space, std::size_t parts, bool first) const;
  BoundLaunch::Outcome reduce_share(Team& team, int share, int shares) const;
  BoundLaunch::Outcome add_tiles(Team& team, int thread, int threads) const;
  Tile tile_of(Team& team, ThreadSpace& space, std::int64_t number) const;
  BoundLaunch::Outcome run_tile(Tile& tile) const;
  void clear(const Tile& tile) const;
  [[nodiscard]] std::size_t stripes(int threads) const;
  void add_in_turn(Tile& tile) const;
  std::span<const NoteColumn> columns_of(const Tile& tile, const NotedCells& noted) const;
  void add_notes(const Tile& tile) const;
  void sort_notes(const Tile& tile) const;
  void reduce_tile(const Tile& tile, ThreadSpace& into) const;
  void store_reductions(Team& team) const;
  static void flush(codegen::KernelCall* call);

  std::shared_ptr<const kernel::Kernel> kernel_;  // `additions_` points into it
  kernel::Additions additions_;
  std::vector<Reduced> reduced_;
  std::vector<Cells> cells_;       // by op of `additions_`
  std::vector<NotedCells> noted_;  // by accumulator
  bool some_may_not_run_ = false;  // a mask, or a loop that a cancel may end
  std::int64_t tile_samples_ = 0;
  std::unique_ptr<Patience> patience_;  // of threads that wait for their turn
};

}  // namespace eagle::run
