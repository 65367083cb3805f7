#include "engine/plane/packed.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace eagle::plane {

std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> shape, std::uint32_t item_bytes) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = item_bytes;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

__extension__ typedef unsigned __int128 UnsignedWide;

std::vector<std::byte> repeated(std::span<const std::byte> element) {
  constexpr std::size_t most_bytes = 64u << 10;
  std::vector<std::byte> pattern;
  while (pattern.empty() || pattern.size() + element.size() <= most_bytes)
    pattern.insert(pattern.end(), element.begin(), element.end());
  return pattern;
}

StatusOr<Packed> Packed::of(const View& view) {
  constexpr UnsignedWide most = UnsignedWide(1) << 62;
  const auto count = static_cast<std::uint64_t>(elements(view));
  if (UnsignedWide(count) * view.item_bytes > most) {
    return Status(Reason::bad_value, "a view of " + to_string(view) +
                                         " has over 2^62 bytes when it is packed; take a part of it");
  }
  Packed packed;
  packed.offset_ = view.offset;
  packed.bytes_ = count * view.item_bytes;
  packed.shape_.assign(view.shape.begin(), view.shape.end());
  packed.strides_.assign(view.strides.begin(), view.strides.end());
  packed.run_bytes_ = view.item_bytes;
  while (!packed.shape_.empty() && (packed.shape_.back() == 1 ||
                                    packed.strides_.back() == static_cast<std::int64_t>(packed.run_bytes_))) {
    packed.run_bytes_ *= static_cast<std::uint64_t>(packed.shape_.back());
    packed.shape_.pop_back();
    packed.strides_.pop_back();
  }
  return packed;
}

Status check_target(const View& view, std::uint64_t plane_bytes) {
  EAGLE_ASSIGN_OR_RETURN(const Packed packed, Packed::of(view));
  if (packed.bytes() <= plane_bytes) return {};
  return {Reason::bad_value, "expected an array to write in that holds each of its bytes once, found " +
                                 to_string(view) + ", which is " + std::to_string(packed.bytes()) +
                                 " bytes in a plane of " + std::to_string(plane_bytes) +
                                 "; name the elements that lie there, without axes of stride 0"};
}

template <typename Part>
void Packed::each(std::uint64_t first, std::uint64_t count, const Part& part) const {
  while (count > 0) {
    const std::uint64_t within = first % run_bytes_;
    std::uint64_t run = first / run_bytes_;
    std::int64_t offset = offset_ + static_cast<std::int64_t>(within);
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      const auto extent = static_cast<std::uint64_t>(shape_[axis]);
      offset += static_cast<std::int64_t>(run % extent) * strides_[axis];
      run /= extent;
    }
    const std::uint64_t piece = std::min(run_bytes_ - within, count);
    part(offset, static_cast<std::size_t>(piece));
    first += piece;
    count -= piece;
  }
}

void Packed::read(const std::byte* plane, std::uint64_t first, std::span<std::byte> into) const {
  std::byte* to = into.data();
  each(first, into.size(), [&](std::int64_t offset, std::size_t count) {
    std::memcpy(to, plane + offset, count);
    to += count;
  });
}

std::vector<Packed::Rows> Packed::rows(std::uint64_t first, std::uint64_t count) const {
  std::vector<Rows> all;
  each(first, count, [&](std::int64_t offset, std::size_t bytes) {
    if (!all.empty() && all.back().bytes == bytes) {
      Rows& last = all.back();
      const std::int64_t end = last.offset + last.stride * static_cast<std::int64_t>(last.count - 1);
      if (last.count == 1) last.stride = offset - end;
      if (offset - end == last.stride) {
        ++last.count;
        return;
      }
    }
    all.push_back({offset, bytes, 0, 1});
  });
  return all;
}

void Packed::write(std::byte* plane, std::uint64_t first, std::span<const std::byte> from) const {
  const std::byte* source = from.data();
  each(first, from.size(), [&](std::int64_t offset, std::size_t count) {
    std::memcpy(plane + offset, source, count);
    source += count;
  });
}

}  // namespace eagle::plane
