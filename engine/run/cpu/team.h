// Teams: several threads on one piece of work.
#pragma once

namespace eagle::run {

// What each thread of a team calls, with its number and how many there are.
using TeamBody = void (*)(const void* body, int thread, int threads);
void run_team(int wanted, TeamBody call, const void* body);

// Calls `body(thread, threads)` on a team of up to `wanted` threads, or in place, with (0, 1), where one is
// enough or somebody's region is open. One region, never nested. Each thread has a kernel::FloatEnvironment.
// `body` may not throw.
template <typename Body>
void run_team(int wanted, const Body& body) {
  run_team(
      wanted,
      [](const void* erased, int thread, int threads) {
        (*static_cast<const Body*>(erased))(thread, threads);
      },
      &body);
}

// Calls `body(share)` for each of so many shares. The team may be smaller: then some thread has several.
template <typename Body>
void run_shares(int shares, const Body& body) {
  run_team(shares, [&](int thread, int threads) {
    for (int share = thread; share < shares; share += threads) body(share);
  });
}

}  // namespace eagle::run
