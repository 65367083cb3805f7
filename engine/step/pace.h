// Pace: how a run is cut, into tiles of samples that stay in cache and passes of steps between which
// somebody may stop it. Neither changes a bit of what is computed.
#pragma once

#include <algorithm>
#include <cstdint>

namespace eagle::step {

// Samples that one thread takes through all steps of a pass before it takes others. The state of so many
// fits the first-level cache beside the code's own needs.
constexpr std::int64_t tile_samples = 1024;
constexpr std::int64_t tile_grain = 64;  // below this the price of a call shows

// Samples a tile: so many that each thread of the team gets four or more tiles where there are samples
// enough, at most `tile_samples`, and a whole number of blocks of `lanes` so that only the last tile of a
// run has samples left over. samples >= 0, team and lanes >= 1.
constexpr std::int64_t tile_size(std::int64_t samples, int team, int lanes) {
  const std::int64_t wanted = std::clamp(samples / (std::int64_t{4} * team), tile_grain, tile_samples);
  return (wanted + lanes - 1) / lanes * lanes;
}

// A run of at most so many sample steps (a few tens of milliseconds of light work) is one pass.
constexpr std::int64_t one_pass_sample_steps = 4'000'000;
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

constexpr double pass_s = 0.05;

// Steps of a pass that is to take about `pass_s`: 1 .. left, left >= 1. Stepping takes at least two thirds of
// it: where moving the state through memory alone takes long, the pass is longer. All that is left is taken
// when it is not much more.
constexpr std::int64_t pass_steps(PassCost cost, std::int64_t left) {
  const double stepping_s = std::max(pass_s - cost.visit_s, 2 * cost.visit_s);
  const double wanted = stepping_s / std::max(cost.step_s, 1e-12);
  if (wanted * 1.5 >= static_cast<double>(left)) return left;
  return std::max<std::int64_t>(static_cast<std::int64_t>(wanted), 1);
}

}  // namespace eagle::step
