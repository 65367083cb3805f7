#include "engine/plane/view.h"

#include <algorithm>
#include <limits>

namespace eagle::plane {
namespace {

__extension__ typedef __int128 Wide;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

// "(4, 100)", "(8,)", "()", as Python writes a tuple.
std::string tuple(const Dimensions& numbers) {
  std::string out = "(";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(numbers[i]);
  }
  return out + (numbers.size() == 1 ? ",)" : ")");
}

bool has_elements(const View& view) {
  return std::none_of(view.shape.begin(), view.shape.end(), [](std::int64_t n) { return n == 0; });
}

// Signed distances in bytes from the first element to the lowest and the highest one.
struct Reach {
  Wide below = 0;
  Wide above = 0;
};

// Stops early once the reach is beyond any plane, so that 32 products of 126 bits cannot wrap the sum.
Reach reach(const View& view) {
  constexpr Wide hopeless = Wide{1} << 64;
  Reach out;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    const Wide span = Wide{view.shape[i] - 1} * view.strides[i];
    (span < 0 ? out.below : out.above) += span;
    if (out.above > hopeless || out.below < -hopeless) break;
  }
  return out;
}

Status check_form(const View& view) {
  if (view.shape.size() > max_dimensions) {
    return {Reason::bad_value, "expected at most " + std::to_string(max_dimensions) + " dimensions, found " +
                                   std::to_string(view.shape.size())};
  }
  if (view.shape.size() != view.strides.size()) {
    return {Reason::bad_value, "expected one stride a dimension, found " + std::to_string(view.shape.size()) +
                                   " dimensions and " + std::to_string(view.strides.size()) + " strides"};
  }
  if (std::any_of(view.shape.begin(), view.shape.end(), [](std::int64_t n) { return n < 0; })) {
    return {Reason::bad_value, "expected extents of at least 0, found shape " + tuple(view.shape)};
  }
  if (view.dtype != DType::other && bytes_of(view.dtype) == 0) {
    return {Reason::bad_value, "unknown element type " + std::to_string(static_cast<unsigned>(view.dtype))};
  }
  const bool size_fits =
      view.dtype == DType::other ? view.item_bytes > 0 : view.item_bytes == bytes_of(view.dtype);
  if (!size_fits) {
    const std::string expected =
        view.dtype == DType::other ? "at least 1" : std::to_string(bytes_of(view.dtype));
    return {Reason::bad_value, "expected elements of " + expected + " bytes for " +
                                   std::string(name_of(view.dtype)) + ", found " +
                                   std::to_string(view.item_bytes)};
  }
  return {};
}

Status check_count(const View& view) {
  Wide count = 1;
  for (const std::int64_t n : view.shape) {
    count *= n;
    if (count > largest) {
      return {Reason::bad_value, "shape " + tuple(view.shape) + " has more elements than 64 bits can count"};
    }
  }
  return {};
}

}  // namespace

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "float64";
    case DType::f32:
      return "float32";
    case DType::i64:
      return "int64";
    case DType::i32:
      return "int32";
    case DType::boolean:
      return "bool";
    case DType::other:
      return "other";
  }
  return "unknown";
}

std::uint32_t bytes_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::boolean:
      return 1;
    case DType::other:
      return 0;
  }
  return 0;
}

std::string to_string(const View& view) {
  return std::string(name_of(view.dtype)) + " " + tuple(view.shape) + " strides " + tuple(view.strides) +
         " at byte " + std::to_string(view.offset);
}

std::int64_t elements(const View& view) {
  if (!has_elements(view)) return 0;
  std::int64_t count = 1;
  for (const std::int64_t n : view.shape) count *= n;
  return count;
}

Status check(const View& view, std::uint64_t plane_bytes) {
  EAGLE_RETURN_IF_ERROR(check_form(view));
  Wide first = view.offset;
  Wide last = view.offset;
  if (has_elements(view)) {
    EAGLE_RETURN_IF_ERROR(check_count(view));
    const Reach distance = reach(view);
    first += distance.below;
    last += distance.above + view.item_bytes;
  }
  const auto end = static_cast<std::int64_t>(std::min(plane_bytes, static_cast<std::uint64_t>(largest)));
  if (first < 0 || last > end) {
    return {Reason::view_outside_plane,
            to_string(view) + " with elements of " + std::to_string(view.item_bytes) +
                " bytes reaches outside its plane of " + std::to_string(plane_bytes) + " bytes"};
  }
  return {};
}

Extent extent(const View& view) {
  if (!has_elements(view)) return {};
  const Reach distance = reach(view);
  return {static_cast<std::int64_t>(view.offset + distance.below),
          static_cast<std::int64_t>(view.offset + distance.above + view.item_bytes)};
}

}  // namespace eagle::plane
