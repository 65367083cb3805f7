#include "engine/plane/copy_view.h"

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

}  // namespace

void copy_view(const View& from, const std::byte* from_plane, const View& to, std::byte* to_plane) {
  if (elements(from) == 0) return;
  copy_axes(from, from_plane + from.offset, to, to_plane + to.offset, 0);
}

}  // namespace eagle::plane
