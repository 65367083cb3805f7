// Recorder: copies planes of a model, row by row, as a run goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/run/built_graph.h"
#include "engine/step/model.h"
#include "engine/step/packed_tile.h"

namespace eagle::step {

// Different threads may record different samples at the same time.
class Recorder {
public:
  Recorder(const Record& record, std::span<const ColumnMemory> columns, std::int64_t samples,
           std::span<const run::PlaneMemory> planes);

  [[nodiscard]] std::int64_t every() const { return every_; }
  // Rows that there are once a run took so many steps.
  [[nodiscard]] std::int64_t rows_after(std::int64_t steps) const {
    return steps / every_ + (initial_ ? 1 : 0);
  }
  // The samples [begin, end) as they are now are rows [first, last).
  void record(std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last) const;

private:
  struct Recorded {
    ColumnMemory from;
    std::byte* rows = nullptr;
  };
  std::vector<Recorded> planes_;
  std::int64_t every_ = 1;
  std::int64_t capacity_ = 0;
  std::int64_t samples_ = 0;
  bool initial_ = false;
};

}  // namespace eagle::step
