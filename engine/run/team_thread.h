// Where an OpenMP team may be opened.
#pragma once

#include <optional>
#include <thread>
#include <utility>

namespace eagle::run {

// Whether this process was forked from another one by the C library's fork.
bool in_forked_child();

// Runs `work()` and gives back its result: in place, but in a forked child on a thread of its own. The team
// of the thread that forked did not come along, yet libgomp goes on waiting for it; a fresh thread gets a
// fresh team.
template <typename Work>
auto with_team(Work&& work) {
  if (!in_forked_child()) return work();
  std::optional<decltype(work())> result;
  std::thread([&] { result.emplace(work()); }).join();
  return *std::move(result);
}

}  // namespace eagle::run
