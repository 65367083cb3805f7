// Piece: what one thread or a team does of an instruction before somebody else may have a turn.
//
// Samples (chunks, leaves, tiles) are dealt out to shares, one a thread of the team, the same ones each time.
// A share goes on where it stopped, so a piece that ends early changes neither who computes what nor a bit.
#pragma once

#include <cstdint>
#include <span>

#include "engine/run/control.h"
#include "engine/run/cpu/slice.h"
#include "engine/run/kernel_counts.h"

namespace eagle::run {

struct ThreadSpace;  // shared_launch.h

// How far a share (or a branch) has come, and what it counted meanwhile.
struct alignas(64) Place {
  std::int64_t done = 0;
  std::int64_t block_end = 0;  // of the block at `done`, where some of its functions have run
  std::uint32_t function = 0;  // the next one of that block
  std::uint32_t group = 0;     // of a branch
  KernelCounts counts;
};

// How far an instruction has come. Fresh before its first piece.
struct Progress {
  bool left = false;  // a piece has run, and there is more; after the last one it is false again
};

// What a piece runs with.
struct Piece {
  int team = 1;                      // threads, at most
  std::span<Place> places;           // one a share, or one a branch
  std::span<ThreadSpace> spaces;     // one a thread, for what samples make together
  const Control* control = nullptr;  // loops inside kernels look at its flag
  Slice slice;
  bool measured = false;  // note what functions take (node_times.h)
};

}  // namespace eagle::run
