// Shared bytes: which bytes two views have in common, where `overlap` only says whether they have any.
//
// Counted exactly for views whose strides nest (slices, reversed and stepped views, columns, transposes,
// blocks of one matrix, whatever their size), and for others while they have few pieces; past `work_cap`
// steps the count is what was found by then. Pure; any thread.
#pragma once

#include <cstdint>

#include "engine/plane/view.h"

namespace eagle::plane {

struct SharedBytes {
  std::int64_t first = 0;  // of the plane; 0 without any
  std::int64_t count = 0;
  bool exact = true;       // false: the work cap was reached; there may be more, and earlier ones
  std::int64_t steps = 0;  // that the answer took
};

constexpr std::int64_t shared_bytes_work_cap = 1'000'000;

// Both views have passed `check`. Views of different planes share nothing.
SharedBytes shared_bytes(const View& a, const View& b, std::int64_t work_cap = shared_bytes_work_cap);

// The same from the other end: `first` is then the highest byte that they share (0 without any), or of those
// that were found.
SharedBytes shared_bytes_from_the_end(const View& a, const View& b,
                                      std::int64_t work_cap = shared_bytes_work_cap);

// How many different bytes a view touches.
inline SharedBytes touched_bytes(const View& view, std::int64_t work_cap = shared_bytes_work_cap) {
  return shared_bytes(view, view, work_cap);
}

}  // namespace eagle::plane
