// Pace: how a run is cut, into tiles of samples that stay in cache, passes of steps between which somebody
// may stop it, and windows of a tile's steps. None changes a bit of what is computed.
#pragma once

#include <algorithm>
#include <cstdint>

namespace eagle::step {

// Samples that one thread takes through all steps of a pass before it takes others: at most so many that
// their state fits the first-level cache beside the code's own needs.
constexpr std::int64_t tile_samples = 1024;
constexpr std::int64_t tile_bytes = 24'576;
constexpr std::int64_t tile_grain = 64;  // below this the price of a call shows

// Samples a tile: so many that each thread of the team gets four or more tiles where there are samples
// enough, at most `tile_samples` or `tile_bytes`, and a whole number of blocks of `lanes` so that only the
// last tile of a run has samples left over. samples and bytes_per_sample >= 0, team and lanes >= 1.
constexpr std::int64_t tile_size(std::int64_t samples, int team, int lanes, std::int64_t bytes_per_sample) {
  const std::int64_t fitting =
      std::clamp(tile_bytes / std::max<std::int64_t>(bytes_per_sample, 1), tile_grain, tile_samples);
  const std::int64_t wanted = std::clamp(samples / (std::int64_t{4} * team), tile_grain, fitting);
  return (wanted + lanes - 1) / lanes * lanes;
}

// A run of at most so many sample steps (a few milliseconds of light work) is one pass.
constexpr std::int64_t one_pass_sample_steps = 500'000;
// One of at most so many runs on the calling thread, without opening a parallel region.
constexpr std::int64_t inline_sample_steps = 65'536;

// samples * steps <= bound, for samples and steps >= 0.
constexpr bool at_most(std::int64_t samples, std::int64_t steps, std::int64_t bound) {
  return samples == 0 || steps <= bound / samples;
}

// What a pass is expected to cost the whole team.
struct PassCost {
  double visit_s = 0;  // to bring every tile into cache and back, whatever the steps
  double step_s = 0;   // one step of every tile
};

constexpr double pass_s = 0.010;

// Steps of a pass that is to take about `pass_s`: 1 .. left, left >= 1. Stepping takes at least two thirds of
// it: where moving the state through memory alone takes long, the pass is longer. All that is left is taken
// when it is not much more.
constexpr std::int64_t pass_steps(PassCost cost, std::int64_t left) {
  const double stepping_s = std::max(pass_s - cost.visit_s, 2 * cost.visit_s);
  const double wanted = stepping_s / std::max(cost.step_s, 1e-12);
  if (wanted * 1.5 >= static_cast<double>(left)) return left;
  return std::max<std::int64_t>(static_cast<std::int64_t>(wanted), 1);
}

// ---- windows: the steps of a tile between two looks at what became of it

constexpr double window_s = 0.0005;  // a quarter of a piece (run::Slice), which ends between two
constexpr std::int64_t first_window = 64;
constexpr std::int64_t least_window = 8;               // where pieces are to be as small as they can be
constexpr std::int64_t longest_thinning_window = 256;  // where samples finish, but packing them does not pay
constexpr std::int64_t blind_sample_steps = 1'024;     // of a window whose duration nobody knows

// Steps of a window that is to last at most `window_s`; at least 1. step_s: one step of the tile, 0 when not
// known.
constexpr std::int64_t longest_window(double step_s, std::int64_t samples) {
  const double wanted = step_s > 0 ? window_s / step_s
                                   : static_cast<double>(blind_sample_steps) /
                                         static_cast<double>(std::max<std::int64_t>(samples, 1));
  return static_cast<std::int64_t>(std::clamp(wanted, 1.0, 1e9));
}

// A pass runs in pieces, between which others have their turn; what it takes is what its pieces take.
//
// One that lasts longer than this is left by tiles when somebody wants the run to stop; a shorter one is
// done first, so that every sample is at the same step. It is processor time, so that others on the machine
// do not make passes that are left; but nobody waits for longer than the second by the clock.
constexpr double patience_s = 0.012;
constexpr double longest_patience_s = 0.050;

// What a pass that was left has done, and what would bring all tiles to the step of the furthest.
struct LeftPass {
  double took_s = 0;
  std::int64_t done = 0;     // steps of tiles, added up
  std::int64_t missing = 0;  // the same
};

constexpr double levelling_s = 0.006;

// Whether to bring the tiles of a pass that was left to one step: where that is soon done.
constexpr bool levelling_pays(const LeftPass& pass) {
  if (pass.missing == 0 || pass.done == 0) return false;
  return pass.took_s * static_cast<double>(pass.missing) <= levelling_s * static_cast<double>(pass.done);
}

// What is known about a tile of whose samples some have finished.
struct Thinning {
  std::int64_t blocks = 0;  // with a live sample, as they lie now
  std::int64_t packed = 0;  // that the live samples need
  std::int64_t live = 0;
  std::int64_t finished = 0;  // in the last window
  std::int64_t window = 1;    // its steps
  std::int64_t left = 0;      // steps, at most
  double block_step_s = 0;    // one step of one block
  double move_s = 0;          // to pack them together
};

// Whether to pack the live samples of a tile together. Samples are taken to go on finishing at the rate of
// the last window, so that what is left takes window * live / finished steps. Where none finished in it, they
// are taken to last as long again.
constexpr bool packing_pays(const Thinning& tile) {
  if (tile.live <= 0 || tile.packed * 8 > tile.blocks * 7) return false;
  double expected = static_cast<double>(tile.window);
  if (tile.finished > 0) expected *= static_cast<double>(tile.live) / static_cast<double>(tile.finished);
  const double steps = std::min(expected, static_cast<double>(tile.left));
  const double saved = static_cast<double>(tile.blocks - tile.packed) * tile.block_step_s * steps;
  return saved > 1.5 * tile.move_s;
}

// The window after one in which samples finished that it did not pay to pack: until an eighth of the live
// ones should have finished, which is the least that is packed.
constexpr std::int64_t thinning_window(const Thinning& tile) {
  const double eighth = static_cast<double>(tile.window) * static_cast<double>(tile.live) /
                        (8 * static_cast<double>(std::max<std::int64_t>(tile.finished, 1)));
  return static_cast<std::int64_t>(
      std::clamp(eighth, static_cast<double>(first_window), static_cast<double>(longest_thinning_window)));
}

}  // namespace eagle::step
