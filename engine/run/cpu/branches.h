// Branches that run at the same time, each on one thread.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>

namespace eagle::run {

// Calls `run(branch)` for each branch, on a team of up to `team` threads; in place, one after another, inside
// somebody's parallel region. One region, never nested. `run` may not throw, and is called from several
// threads.
template <typename Run>
void run_branches(std::size_t branches, int team, const Run& run) {
  const int threads = static_cast<int>(std::min<std::size_t>(branches, static_cast<std::size_t>(team)));
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1 && !omp_in_parallel())
  for (std::size_t branch = 0; branch < branches; ++branch) run(branch);
}

}  // namespace eagle::run
