// Teams: several threads on one piece of work.
#pragma once

namespace eagle::run {

// What each thread of a team calls, with its number and how many there are.
using TeamBody = void (*)(const void* body, int thread, int threads);
void run_team(int wanted, TeamBody call, const void* body);

// Calls `body(thread, threads)` on a team of up to `wanted` threads, or in place, with (0, 1), where one is
// enough or the caller is in a team already. One region, never nested. Each thread has a
// kernel::FloatEnvironment. `body` may not throw.
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

// Whether `run_team` of the calling thread would have more threads than it.
bool may_have_team();

using HeldBody = void (*)(const void* body);
void hold_team(int threads, HeldBody call, const void* body);

// Calls `body()` in place, in one region of up to so many threads: each `run_team` that it comes to on this
// thread finds them at hand and opens no region. Between two of those they look for work for some
// microseconds and then sleep; so does this thread where it waits for them. Where there is no team to be
// had, `body` is called and that is all. It may not throw.
template <typename Body>
void hold_team(int threads, const Body& body) {
  hold_team(
      threads, [](const void* erased) { (*static_cast<const Body*>(erased))(); }, &body);
}

}  // namespace eagle::run
