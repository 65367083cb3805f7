// Ticks: a clock that costs next to nothing to read, for pacing.
//
// The processor's time-stamp counter where there is one that this code knows, else the steady clock. Nothing
// but pace may depend on it: a machine may move, and its counter with it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace eagle {

using Ticks = std::uint64_t;

inline Ticks ticks_now() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();  // and not x86intrin.h: all that vector code takes a compiler half a second
#else
  return static_cast<Ticks>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Measured at the first call, which takes a fifth of a millisecond.
inline double ticks_per_second() {
  static const double rate = [] {
    const auto begun = std::chrono::steady_clock::now();
    const Ticks first = ticks_now();
    auto now = begun;
    while (now - begun < std::chrono::microseconds(200)) now = std::chrono::steady_clock::now();
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
