// Forward: writes a kernel's ops and beside each what becomes of tangents. Inside of this folder alone.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/base/status.h"
#include "engine/kernel/diff/activity.h"
#include "engine/kernel/diff/primal.h"
#include "engine/kernel/diff/rules.h"
#include "engine/kernel/diff/writer.h"

namespace eagle::kernel::diff {

class Forward {
public:
  // `dot_tables`, by argument of the kernel: the table of a table's tangent and the accumulator of an
  // accumulator's one, as arguments of the derivative.
  Forward(Primal& primal, Writer& w, const Activity& activity, std::vector<std::size_t> dot_tables)
      : primal_(primal),
        w_(w),
        activity_(activity),
        dot_tables_(std::move(dot_tables)),
        dots_(primal.kernel().value_types.size(), none) {}

  void set(ValueId value, ValueId dot) { dots_[value] = dot; }
  // The tangent of a value; a zero where it does not vary.
  [[nodiscard]] ValueId dot(ValueId value);
  // BAD_VALUE where a primitive has no jvp.
  Status ops(const Region& region);

private:
  Status op(const Op& op);
  Status primitive(const Op& op);
  void plain(const Op& op);
  ValueId elementwise(const Op& op);
  void accum_add(const Op& op);
  Status structure(const Op& op);
  StatusOr<Region> region(const Op& op, std::size_t number);

  Primal& primal_;
  Writer& w_;
  const Activity& activity_;
  std::vector<std::size_t> dot_tables_;
  std::vector<ValueId> dots_;  // none: 0
};

}  // namespace eagle::kernel::diff
