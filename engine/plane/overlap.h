// The byte-overlap test: do two strided views share a byte?
//
// Exact wherever the answer is found within `work_cap` steps of search, and "yes" past it: a wrong "yes"
// can only add an edge or refuse a graph, never miss a conflict. The common shapes (contiguous pieces,
// interleaved columns, reversed and stepped slices, column blocks of one matrix of any size) are decided
// in O(dimensions) without a search. Pure; any thread.
#pragma once

#include <cstdint>

#include "engine/plane/view.h"

namespace eagle::plane {

struct Overlap {
  bool overlaps = false;
  bool exact = true;       // false: the work cap was reached and "yes" is the safe answer
  std::int64_t first = 0;  // when exact and overlapping: a byte of the plane that both touch
  std::int64_t steps = 0;  // of search that the answer took; callers with many pairs can budget them
};

constexpr std::int64_t default_work_cap = 100'000;

// Both views have passed `check`. Views of different planes never overlap.
Overlap overlap(const View& a, const View& b, std::int64_t work_cap = default_work_cap);

// A view as a band of columns in a plane cut into rows of `stride` bytes: whatever it touches lies in bytes
// [first, last) of some row. Two views of one stride whose bands do not meet share no byte, so an index over
// many views can sort by band: the columns of a matrix bound nearly the same bytes and never meet.
struct Band {
  std::int64_t stride = 0;  // 0: no such form, `first` and `last` bound the view's bytes
  std::int64_t first = 0;
  std::int64_t last = 0;
};
Band band_of(const View& view);

}  // namespace eagle::plane
