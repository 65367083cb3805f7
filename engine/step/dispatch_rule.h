// When a dispatch group is split: pure functions over what was measured and counted. Splitting means that the
// samples of a tile are ordered by the branch that they take, so that a block of lanes runs one branch and
// not all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace eagle::step {

// Steps between two looks at what the samples select.
constexpr std::int64_t look_steps = 16;
// Split at a predicted gain of at least the one, fused again under the other: what lies between stays as it
// is.
constexpr double split_gain = 1.15;
constexpr double fuse_gain = 1.05;

class SplitRule {
public:
  [[nodiscard]] bool split() const { return split_; }
  // Takes what the next steps are predicted to gain: time when fused over time when split.
  void look(double gain) { split_ = split_ ? gain >= fuse_gain : gain >= split_gain; }

private:
  bool split_ = false;
};

// Seconds that one block of lanes takes for one step: `common` whatever it selects, and more for each branch
// that some of its samples take; and for ordering one sample once.
struct BranchCosts {
  double common = 0;
  std::vector<double> branches;
  double order = 0;
};

// How often each branch runs in one step of a tile, in blocks of lanes.
struct BlockCounts {
  std::int64_t blocks = 0;
  std::vector<std::int64_t> branches;
};

// A sample that comes to the group takes a branch, from 0 on.
constexpr std::int64_t takes_none = -1;
constexpr std::int64_t not_there = -2;  // finished, or not of this tile: its lane costs nothing

// Counts blocks of `lanes` samples in this order.
inline BlockCounts count_blocks(std::span<const std::int64_t> selectors, std::int64_t lanes,
                                std::size_t branches) {
  BlockCounts counts{0, std::vector<std::int64_t>(branches)};
  std::vector<std::int64_t> seen(branches, -1);
  std::int64_t last = -1;
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    const std::int64_t block = static_cast<std::int64_t>(i) / lanes;
    if (selectors[i] == not_there) continue;
    if (last != block) ++counts.blocks;
    last = block;
    if (selectors[i] < 0) continue;
    const auto branch = static_cast<std::size_t>(selectors[i]);
    if (seen[branch] == block) continue;
    seen[branch] = block;
    ++counts.branches[branch];
  }
  return counts;
}

// The same samples in order of their branches; `samples` by branch, and those that take none.
inline BlockCounts count_ordered(std::span<const std::int64_t> samples, std::int64_t without,
                                 std::int64_t lanes) {
  BlockCounts counts{0, std::vector<std::int64_t>(samples.size())};
  std::int64_t at = without;
  for (std::size_t branch = 0; branch < samples.size(); ++branch) {
    if (samples[branch] > 0) {
      const std::int64_t last = at + samples[branch] - 1;
      counts.branches[branch] = last / lanes - at / lanes + 1;
    }
    at += samples[branch];
  }
  counts.blocks = (at + lanes - 1) / lanes;
  return counts;
}

// Seconds of `look_steps` steps.
inline double seconds_of(const BranchCosts& costs, const BlockCounts& counts) {
  double step = costs.common * static_cast<double>(counts.blocks);
  for (std::size_t branch = 0; branch < counts.branches.size(); ++branch)
    step += costs.branches[branch] * static_cast<double>(counts.branches[branch]);
  return step * static_cast<double>(look_steps);
}

struct Prediction {
  double fused_s = 0;
  double split_s = 0;
  [[nodiscard]] double gain() const { return split_s > 0 ? fused_s / split_s : 1.0; }
};
inline Prediction predict(const BranchCosts& costs, const BlockCounts& fused, const BlockCounts& split,
                          std::int64_t samples) {
  return {seconds_of(costs, fused), seconds_of(costs, split) + costs.order * static_cast<double>(samples)};
}

}  // namespace eagle::step
