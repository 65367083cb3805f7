#include "engine/plane/copy_view.h"

#include <algorithm>
#include <cstring>

namespace eagle::plane {
namespace {

// Axes from `axis` on. At most max_dimensions deep.
void copy_axes(const View& from, const std::byte* source, const View& to, std::byte* target,
               std::size_t axis) {
  const std::int64_t item = from.item_bytes;
  if (axis == from.shape.size()) {
    std::memcpy(target, source, static_cast<std::size_t>(item));
    return;
  }
  const bool last = axis + 1 == from.shape.size();
  if (last && from.strides[axis] == item && to.strides[axis] == item) {
    std::memcpy(target, source, static_cast<std::size_t>(from.shape[axis] * item));
    return;
  }
  for (std::int64_t i = 0; i < from.shape[axis]; ++i)
    copy_axes(from, source + i * from.strides[axis], to, target + i * to.strides[axis], axis + 1);
}

// Elements [begin, end) along an axis.
View part_of(const View& view, std::size_t axis, std::int64_t begin, std::int64_t end) {
  View part = view;
  part.offset += begin * view.strides[axis];
  part.shape[axis] = end - begin;
  return part;
}

}  // namespace

void copy_view(const View& from, const std::byte* from_plane, const View& to, std::byte* to_plane) {
  if (elements(from) == 0) return;
  copy_axes(from, from_plane + from.offset, to, to_plane + to.offset, 0);
}

// In halves along the first axis that has any: at most 62 deep, as its extents multiply to 64 bits.
bool copy_view(const View& from, const std::byte* from_plane, const View& to, std::byte* to_plane,
               const std::function<bool()>& given_up) {
  const auto divisible =
      std::find_if(from.shape.begin(), from.shape.end(), [](std::int64_t extent) { return extent > 1; });
  if (divisible == from.shape.end() || elements(from) <= copy_part_bytes / from.item_bytes) {
    if (given_up()) return false;
    copy_view(from, from_plane, to, to_plane);
    return true;
  }
  const auto axis = static_cast<std::size_t>(divisible - from.shape.begin());
  const std::int64_t half = *divisible / 2;
  return copy_view(part_of(from, axis, 0, half), from_plane, part_of(to, axis, 0, half), to_plane,
                   given_up) &&
         copy_view(part_of(from, axis, half, *divisible), from_plane, part_of(to, axis, half, *divisible),
                   to_plane, given_up);
}

}  // namespace eagle::plane
