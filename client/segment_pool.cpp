#include "client/segment_pool.h"

#include <iterator>
#include <utility>

namespace eagle {

void SegmentPool::insert_free(SegmentId id, Segment& segment, std::uint64_t offset, std::uint64_t bytes) {
  segment.free.emplace(offset, bytes);
  by_size_.emplace(bytes, id, offset);
}

void SegmentPool::erase_free(SegmentId id, Segment& segment,
                             std::map<std::uint64_t, std::uint64_t>::iterator it) {
  by_size_.erase({it->second, id, it->first});
  segment.free.erase(it);
}

SegmentPool::SegmentId SegmentPool::add_segment(std::uint64_t bytes) {
  const SegmentId id = next_++;
  Segment& segment = segments_[id];
  segment.bytes = bytes;
  insert_free(id, segment, 0, bytes);
  return id;
}

std::optional<SegmentPool::Range> SegmentPool::take(std::uint64_t bytes) {
  const std::uint64_t wanted = (bytes + alignment_ - 1) / alignment_ * alignment_;
  const auto fit = by_size_.lower_bound({wanted, 0, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const auto [found, id, offset] = *fit;
  Segment& segment = segments_.at(id);
  erase_free(id, segment, segment.free.find(offset));
  if (found > wanted) insert_free(id, segment, offset + wanted, found - wanted);
  if (spare_ == id) spare_.reset();
  taken_bytes_ += wanted;
  return Range{id, offset, wanted};
}

std::optional<SegmentPool::SegmentId> SegmentPool::give_back(const Range& range) {
  Segment& segment = segments_.at(range.segment);
  std::uint64_t offset = range.offset;
  std::uint64_t bytes = range.bytes;
  taken_bytes_ -= bytes;

  const auto next = segment.free.lower_bound(offset);
  if (next != segment.free.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      erase_free(range.segment, segment, before);
    }
  }
  if (next != segment.free.end() && next->first == range.offset + range.bytes) {
    bytes += next->second;
    erase_free(range.segment, segment, next);
  }
  insert_free(range.segment, segment, offset, bytes);

  if (!segment.empty()) return std::nullopt;
  if (keeps_spare_ && !spare_) {
    spare_ = range.segment;
    return std::nullopt;
  }
  erase_free(range.segment, segment, segment.free.begin());
  segments_.erase(range.segment);
  return range.segment;
}

std::optional<SegmentPool::SegmentId> SegmentPool::drop_spare() {
  keeps_spare_ = false;
  const std::optional<SegmentId> spare = std::exchange(spare_, std::nullopt);
  if (spare) {
    Segment& segment = segments_.at(*spare);
    erase_free(*spare, segment, segment.free.begin());
    segments_.erase(*spare);
  }
  return spare;
}

}  // namespace eagle
