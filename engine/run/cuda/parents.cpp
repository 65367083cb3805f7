#include "engine/run/cuda/parents.h"

#include <algorithm>
#include <functional>

namespace eagle::run::cuda {

std::vector<std::vector<std::uint32_t>> parents_of(
    std::span<const std::pair<std::uint32_t, std::uint32_t>> order, std::size_t leaves) {
  std::vector<std::vector<std::uint32_t>> parents(leaves);
  for (const auto& [earlier, later] : order) parents[later].push_back(earlier);
  // By leaf, a bit each: all that must have ended before it.
  constexpr std::size_t bits = 64;
  std::vector<std::vector<std::uint64_t>> before(leaves);
  for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
    std::vector<std::uint32_t>& mine = parents[leaf];
    before[leaf].resize(leaf / bits + 1);
    // From the last one on: whoever comes before a parent was its parent's business.
    std::sort(mine.begin(), mine.end(), std::greater<>());
    std::vector<std::uint32_t> kept;
    for (const std::uint32_t parent : mine) {
      if ((before[leaf][parent / bits] >> parent % bits & 1) != 0) continue;
      kept.push_back(parent);
      for (std::size_t i = 0; i < before[parent].size(); ++i) before[leaf][i] |= before[parent][i];
      before[leaf][parent / bits] |= std::uint64_t{1} << parent % bits;
    }
    mine.assign(kept.rbegin(), kept.rend());
  }
  return parents;
}

}  // namespace eagle::run::cuda
