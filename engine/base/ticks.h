// Ticks: a clock that costs next to nothing to read, for pacing.
//
// The processor's time-stamp counter where there is one that this code knows, else the steady clock. Nothing
// but pace may depend on it: a machine may move, and its counter with it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace eagle {

using Ticks = std::uint64_t;

inline Ticks ticks_now() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<Ticks>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Measured at the first call, which takes a fifth of a millisecond.
inline double ticks_per_second() {
  static const double rate = [] {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begun = Clock::now();
    const Ticks first = ticks_now();
    Clock::time_point now = begun;
    while (now - begun < std::chrono::microseconds(200)) now = Clock::now();
    const Ticks last = ticks_now();
    return std::max(static_cast<double>(last - first), 1.0) /
           std::chrono::duration<double>(now - begun).count();
  }();
  return rate;
}

// seconds >= 0, at most years.
inline Ticks ticks_of(double seconds) { return static_cast<Ticks>(seconds * ticks_per_second()); }
inline double seconds_of(Ticks ticks) { return static_cast<double>(ticks) / ticks_per_second(); }

}  // namespace eagle
