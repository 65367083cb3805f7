// Views as numpy would make them, for tests.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "engine/plane/view.h"

namespace eagle::plane::testing {

// A C-contiguous array at `offset`.
inline View array(std::vector<std::int64_t> shape, DType dtype = DType::f64, std::int64_t offset = 0,
                  std::uint32_t plane = 0) {
  View view{plane, offset, dtype, bytes_of(dtype), std::move(shape), {}};
  std::int64_t stride = view.item_bytes;
  view.strides.resize(view.shape.size());
  for (std::size_t i = view.shape.size(); i-- > 0;) {
    view.strides[i] = stride;
    stride *= view.shape[i];
  }
  return view;
}

// view[..., start : start + count*step : step, ...] on one axis; `step` may be negative.
inline View slice(View view, std::size_t axis, std::int64_t start, std::int64_t count,
                  std::int64_t step = 1) {
  view.offset += start * view.strides[axis];
  view.shape[axis] = count;
  view.strides[axis] *= step;
  return view;
}

// view[..., index, ...]: one axis less.
inline View at(View view, std::size_t axis, std::int64_t index) {
  view.offset += index * view.strides[axis];
  view.shape.erase(view.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(axis));
  return view;
}

inline View transposed(View view) {
  view.shape = {view.shape.rbegin(), view.shape.rend()};
  view.strides = {view.strides.rbegin(), view.strides.rend()};
  return view;
}

// The same bytes as another element type; the last axis must be contiguous.
inline View cast(View view, DType dtype) {
  view.shape.back() = view.shape.back() * view.item_bytes / bytes_of(dtype);
  view.item_bytes = bytes_of(dtype);
  view.strides.back() = view.item_bytes;
  view.dtype = dtype;
  return view;
}

// Every byte that a view touches, the slow way.
inline std::set<std::int64_t> bytes_touched(const View& view) {
  std::set<std::int64_t> starts = {view.offset};
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    std::set<std::int64_t> next;
    for (const std::int64_t start : starts) {
      for (std::int64_t i = 0; i < view.shape[axis]; ++i) next.insert(start + i * view.strides[axis]);
    }
    starts = std::move(next);
  }
  std::set<std::int64_t> bytes;
  for (const std::int64_t start : starts) {
    for (std::int64_t i = 0; i < view.item_bytes; ++i) bytes.insert(start + i);
  }
  return bytes;
}

// Any view that `check` accepts within `plane_bytes`: 0 to 4 axes, all kinds of strides, sometimes empty.
inline View random_view(std::mt19937_64& random, std::int64_t plane_bytes) {
  const auto up_to = [&](std::int64_t last) {
    return std::uniform_int_distribution<std::int64_t>(0, last)(random);
  };
  constexpr DType dtypes[] = {DType::f64, DType::f32, DType::boolean, DType::other};
  for (;;) {
    View view;
    view.dtype = dtypes[up_to(3)];
    view.item_bytes =
        view.dtype == DType::other ? static_cast<std::uint32_t>(1 + up_to(20)) : bytes_of(view.dtype);
    view.offset = up_to(plane_bytes);
    const std::int64_t dimensions = up_to(4);
    const bool aligned = up_to(1) == 0;
    for (std::int64_t i = 0; i < dimensions; ++i) {
      view.shape.push_back(up_to(20) == 0 ? 0 : 1 + up_to(6));
      const std::int64_t stride = up_to(60) - 30;
      view.strides.push_back(aligned ? stride / 4 * view.item_bytes : stride);
    }
    if (check(view, static_cast<std::uint64_t>(plane_bytes)).ok()) return view;
  }
}

}  // namespace eagle::plane::testing
