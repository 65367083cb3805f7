// Layout: how a kernel's argument lies in its plane.
//
// A scalar argument takes a plane of shape (N,), a vector of w components (w, N), a matrix (R*C, N) or
// (R, C, N): component-major, samples contiguous. A sample-major (N, w) array whose components are
// contiguous after transposing is accepted as the same bytes, except that a square (w, w) array is
// ambiguous and refused; (w, 1, N) is the vector without doubt. Components may lie apart (rows of a larger
// array) or in reverse, but not overlap, and elements are aligned to their size. Anything else would have to
// be copied and is refused (COPY_BOUND_PLANE).
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"
#include "engine/plane/view.h"

namespace eagle::plane {

struct Layout {
  std::int64_t samples = 0;
  std::int64_t component_stride = 0;  // bytes from one component's first sample to the next's
};

// The element type of the planes of an argument: f64, f32, i64 or bool.
DType dtype_of(kernel::Scalar scalar);

// Only for views that `check` accepted. `where` begins the message: "oscillator: argument 'x'". WRONG_DTYPE
// (with the cast to write), WRONG_SHAPE, COPY_BOUND_PLANE (with the reason: strided, sample-major,
// overlapping or unaligned, and the cure).
StatusOr<Layout> layout_of(const View& view, const kernel::Type& type, std::string_view where);

// The layout of a table or accumulator: `samples` counts its elements. Without axes of its own it is as long
// as the array and needs at least one element; with axes the array has their product of elements, or one
// dimension for each axis, row-major. Refusals as above; an empty table is BAD_VALUE.
StatusOr<Layout> layout_of_table(const View& view, const kernel::Argument& table, std::string_view where);

// The layout of one number: an array of a single element, of any shape. Refusals as above.
StatusOr<Layout> layout_of_one(const View& view, const kernel::Type& type, std::string_view where);

}  // namespace eagle::plane
