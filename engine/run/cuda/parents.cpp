#include "engine/run/cuda/parents.h"

#include <algorithm>
#include <functional>

namespace eagle::run::cuda {

std::vector<std::vector<std::uint32_t>> parents_of(std::span<const graph::Edge> edges, std::size_t leaves) {
  std::vector<std::vector<std::uint32_t>> parents(leaves);
  for (const graph::Edge& edge : edges) parents[edge.destination].push_back(edge.source);
  // By leaf: all that must have ended before it.
  std::vector<std::vector<bool>> before(leaves, std::vector<bool>(leaves, false));
  for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
    std::vector<std::uint32_t>& mine = parents[leaf];
    // From the last one on: whoever comes before a parent was its parent's business.
    std::sort(mine.begin(), mine.end(), std::greater<>());
    std::vector<std::uint32_t> kept;
    for (const std::uint32_t parent : mine) {
      if (before[leaf][parent]) continue;
      kept.push_back(parent);
      before[leaf][parent] = true;
      for (std::size_t i = 0; i < parent; ++i) before[leaf][i] = before[leaf][i] || before[parent][i];
    }
    mine.assign(kept.rbegin(), kept.rend());
  }
  return parents;
}

}  // namespace eagle::run::cuda
