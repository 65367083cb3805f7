#include "engine/step/recorder.h"

#include <algorithm>
#include <cstring>

namespace eagle::step {

Recorder::Recorder(const Record& record, std::span<const ColumnMemory> columns, std::int64_t samples,
                   std::span<const run::PlaneMemory> planes)
    : every_(record.every), capacity_(record.rows), samples_(samples), initial_(record.initial) {
  for (const Record::Plane& plane : record.planes) {
    std::byte* rows = planes[plane.rows.plane].data;
    planes_.push_back({columns[plane.column], rows == nullptr ? nullptr : rows + plane.rows.offset});
  }
}

void Recorder::record(std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last) const {
  if (begin >= end) return;
  for (const Recorded& plane : planes_) {
    const std::int64_t row_bytes = samples_ * plane.from.item_bytes;
    const auto bytes = static_cast<std::size_t>((end - begin) * plane.from.item_bytes);
    // Rows that others would overwrite at once are not worth their time.
    for (std::int64_t row = std::max(first, last - capacity_); row < last; ++row) {
      std::byte* to =
          plane.rows + (row % capacity_) * row_bytes * plane.from.components + begin * plane.from.item_bytes;
      const std::byte* from = plane.from.data + begin * plane.from.item_bytes;
      for (int c = 0; c < plane.from.components; ++c)
        std::memcpy(to + c * row_bytes, from + c * plane.from.component_stride, bytes);
    }
  }
}

}  // namespace eagle::step
