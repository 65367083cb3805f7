// Packed: the elements of a view in row-major order, as the bytes that travel over a wire.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/plane/view.h"

namespace eagle::plane {

// Bytes from one element to the next along each axis of an array in row-major order. Not for shapes whose
// bytes do not fit 63 bits.
std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> shape, std::uint32_t item_bytes);

// A view that `check` accepted and that is to be written: one with more bytes than its plane has holds some
// of them twice, up to without end. BAD_VALUE.
Status check_target(const View& view, std::uint64_t plane_bytes);

// An element, of at least a byte, over and over, as often as fits into 64 KiB, and once where it does not:
// what is stored where a view is filled.
std::vector<std::byte> repeated(std::span<const std::byte> element);

// A plain value; may be used by any number of threads at once.
class Packed {
public:
  // Of a view that `check` accepted. BAD_VALUE where it would have over 2^62 bytes, which views with strides
  // of 0 can.
  static StatusOr<Packed> of(const View& view);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  // Bytes [first, first + size) of the packed form, from or to the plane at `plane`. The range must lie
  // within `bytes()`.
  void read(const std::byte* plane, std::uint64_t first, std::span<std::byte> into) const;
  void write(std::byte* plane, std::uint64_t first, std::span<const std::byte> from) const;

  // Pieces of a range that lie alike: `count` of `bytes`, the first one `offset` into the plane, each
  // `stride` behind the one before (0 where there is one).
  struct Rows {
    std::int64_t offset = 0;
    std::uint64_t bytes = 0;
    std::int64_t stride = 0;
    std::uint64_t count = 0;
  };
  // In order; for memory that is reached by copies of many pieces at once.
  [[nodiscard]] std::vector<Rows> rows(std::uint64_t first, std::uint64_t count) const;

private:
  // Calls `part(byte offset in the plane, count)` for the pieces of a range, in order.
  template <typename Part>
  void each(std::uint64_t first, std::uint64_t count, const Part& part) const;

  std::int64_t offset_ = 0;
  std::uint64_t run_bytes_ = 1;      // of the elements that lie together
  std::vector<std::int64_t> shape_;  // of such runs
  std::vector<std::int64_t> strides_;
  std::uint64_t bytes_ = 0;
};

// Moves a packed form of so many bytes from one place to another, some at a time: `read(first, into)`, then
// `write(first, from)`, each a Status. The first error, with what was moved until then.
template <typename Read, typename Write>
Status copy_packed(std::uint64_t bytes, const Read& read, const Write& write) {
  constexpr std::uint64_t piece = std::uint64_t{4} << 20;
  std::vector<std::byte> buffer(std::min(bytes, piece));
  for (std::uint64_t at = 0; at < bytes; at += piece) {
    const auto part = std::span(buffer).first(std::min(piece, bytes - at));
    EAGLE_RETURN_IF_ERROR(read(at, part));
    EAGLE_RETURN_IF_ERROR(write(at, part));
  }
  return {};
}

}  // namespace eagle::plane
