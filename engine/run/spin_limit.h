// How long the threads of a team wait for each other without sleeping.
//
// By itself libgomp waits for milliseconds. Where a thread has no processor, because somebody else computes
// there, all others burn theirs meanwhile: a launch of 60 us took 100 ms and more beside busy neighbours, and
// twice as long on a quiet machine of two processors. libgomp reads the limit when it is loaded.
#pragma once

#include <cstdlib>

namespace eagle::run {

// Looks at a word between two pauses: some 5 us on processors whose pause takes 140 cycles, 2 us on others.
constexpr const char* spin_count = "200";

// For processes that this one starts, or becomes by exec. Whether something changed: it did not where the
// user has said how threads should wait. While no other thread looks at the environment.
inline bool limit_spinning() {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return false;
  return ::setenv("GOMP_SPINCOUNT", spin_count, 1) == 0;
}

}  // namespace eagle::run
