// Stagger: where arrays begin, so that they do not stand in each other's way in the caches.
//
// A chain walks many arrays in step. Where all of them begin at the same place of a page, the bytes that it
// is at are in one set of the first cache, which holds 8 or 12 lines, and a load that comes after a store to
// the same place of another page waits for it. Sixteen stored nodes over 100,000 samples took 252 us so, and
// 107 us with arrays that begin apart (docs/design/performance.md).
#pragma once

#include <cstdint>

namespace eagle::plane {

namespace stagger {
inline constexpr std::uint64_t line = 64;
inline constexpr std::uint64_t page = 4096;
inline constexpr std::uint64_t apart = 3 * line;  // the least between two arrays' places that helps
inline constexpr std::uint64_t period = 1024;     // smaller arrays lie apart by themselves
inline constexpr std::uint64_t step = 17 * line;  // odd in lines: every line of a page has its turn
}  // namespace stagger

// What to set aside for an array of so many bytes where arrays lie one behind the other: a multiple of 64,
// at most 447 bytes more than `bytes`.
constexpr std::uint64_t staggered(std::uint64_t bytes) {
  const std::uint64_t lines = (bytes + stagger::line - 1) / stagger::line * stagger::line;
  if (lines < stagger::period) return lines;
  const std::uint64_t over = lines % stagger::period;
  if (over < stagger::apart) return lines + stagger::apart - over;
  if (over > stagger::period - stagger::apart) return lines + stagger::period + stagger::apart - over;
  return lines;
}

// Where in its first page the n-th of the arrays begins that have pages of their own: a multiple of 64.
constexpr std::uint64_t stagger_of(std::uint64_t n) { return n * stagger::step % stagger::page; }

}  // namespace eagle::plane
