// Views: which bytes of a plane a node sees. Plain values, no memory behind them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/plane/dimensions.h"

namespace eagle::plane {

// The numbers are those of proto/eagle/v1/plane.proto. `other`: any element type, for host nodes.
enum class DType : std::uint8_t { f64 = 1, f32 = 2, i64 = 3, i32 = 4, boolean = 5, other = 15 };
std::string_view name_of(DType dtype);  // numpy's names: "float64", "bool"; "other"
std::uint32_t bytes_of(DType dtype);    // 0 for `other`

// Element (i0, i1, ...) is `item_bytes` bytes at `offset + i0*strides[0] + ...` of plane `plane` (an index
// into the planes of the description it stands in). Strides are bytes and may be negative or 0.
struct View {
  std::uint32_t plane = 0;
  std::int64_t offset = 0;
  DType dtype = DType::f64;
  std::uint32_t item_bytes = 8;
  Dimensions shape;
  Dimensions strides;  // as many as `shape`

  friend bool operator==(const View&, const View&) = default;
};
std::string to_string(const View& view);  // "float64 (4, 100) strides (800, 8) at byte 64"

constexpr int max_dimensions = 32;

// Number of elements (1 for 0-d). Only for views that `check` accepted.
std::int64_t elements(const View& view);

// The half-open range of bytes [first, last) that bounds a view, empty (0, 0) when it has no element.
struct Extent {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

// Checks a view from outside: at most 32 dimensions, as many strides as dimensions, no negative extent, a
// count of elements that fits 64 bits, item size right for the dtype, and every byte inside
// [0, plane_bytes); the offset of a view without elements lies in [0, plane_bytes]. Arithmetic is 128-bit,
// so no combination of strides can wrap around. VIEW_OUTSIDE_PLANE or BAD_VALUE; names the numbers.
Status check(const View& view, std::uint64_t plane_bytes);

// The bounding range; only for views that `check` accepted.
Extent extent(const View& view);

}  // namespace eagle::plane
