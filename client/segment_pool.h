// SegmentPool: carves small arrays out of large planes ("segments").
//
// A plane of its own costs an array a round trip, a descriptor and whole pages; a range of a segment costs
// none of these. Pure bookkeeping, no memory behind it: the caller makes and drops the segments. Takes
// the smallest free range that fits, joins neighbours when they come back. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace eagle {

class SegmentPool {
public:
  using SegmentId = std::uint32_t;
  struct Range {
    SegmentId segment = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;  // as reserved: a multiple of the alignment
    friend bool operator==(const Range&, const Range&) = default;
  };

  // A cache line, and a full AVX-512 vector.
  static constexpr std::uint64_t default_alignment = 64;
  // Every range starts at a multiple of `alignment`.
  explicit SegmentPool(std::uint64_t alignment = default_alignment) : alignment_(alignment) {}

  // A free range of at least `bytes`, or nothing when no segment has one. `bytes` >= 1.
  std::optional<Range> take(std::uint64_t bytes);
  // A new segment, whole and free. `bytes` is a multiple of the alignment.
  SegmentId add_segment(std::uint64_t bytes);
  // Gives back a range that `take` returned. Returns a segment to drop when one more than the spare one that
  // is kept has become empty: that way a program that makes and drops one array in a loop costs nothing.
  std::optional<SegmentId> give_back(const Range& range);
  // From now on no spare segment is kept; returns the one that is.
  std::optional<SegmentId> drop_spare();

  [[nodiscard]] std::size_t segments() const { return segments_.size(); }
  [[nodiscard]] std::uint64_t taken_bytes() const { return taken_bytes_; }

private:
  struct Segment {
    std::uint64_t bytes = 0;
    std::map<std::uint64_t, std::uint64_t> free;  // offset -> bytes
    [[nodiscard]] bool empty() const { return free.size() == 1 && free.begin()->second == bytes; }
  };
  void insert_free(SegmentId id, Segment& segment, std::uint64_t offset, std::uint64_t bytes);
  void erase_free(SegmentId id, Segment& segment, std::map<std::uint64_t, std::uint64_t>::iterator it);

  const std::uint64_t alignment_;
  std::map<SegmentId, Segment> segments_;
  std::set<std::tuple<std::uint64_t, SegmentId, std::uint64_t>>
      by_size_;                     // (bytes, segment, offset), all free ranges
  std::optional<SegmentId> spare_;  // an empty segment that is kept
  bool keeps_spare_ = true;
  SegmentId next_ = 0;
  std::uint64_t taken_bytes_ = 0;
};

}  // namespace eagle
