// Reverse: goes through a kernel backwards and writes what becomes of adjoints. Inside of this folder alone.
//
// The adjoint of a value is the sum of what its uses contribute, the last use first. Beside an adjoint goes
// the condition under which anything contributed at all: where an `if`, a `select`, a minimum or a loop did
// not take the value, its adjoint is 0 and stays 0, whatever the factors further back are (an infinite slope
// times 0 would be a NaN). Most values are always taken and have no condition.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "engine/kernel/diff/activity.h"
#include "engine/kernel/diff/derivative.h"
#include "engine/kernel/diff/primal.h"
#include "engine/kernel/diff/rules.h"
#include "engine/kernel/diff/writer.h"

namespace eagle::kernel::diff {

class Reverse {
public:
  // The kernel is one in scalars (plain.h); `primal` counts trips. `bar_tables`, by argument of the kernel:
  // the accumulator of a table's adjoint and the table of an accumulator's one, as arguments of the
  // derivative.
  Reverse(Primal& primal, Writer& w, const Activity& activity, std::vector<std::size_t> bar_tables)
      : kernel_(primal.kernel()),
        primal_(primal),
        w_(w),
        activity_(activity),
        bar_tables_(std::move(bar_tables)) {}

  // An adjoint as it stands, with its condition (none: always).
  struct Bar {
    ValueId value = none;
    ValueId taken = none;
  };
  void contribute(ValueId value, ValueId bar, ValueId taken = none);
  // The adjoint of the value, which is whole after everything that uses it was gone through.
  std::optional<Bar> take(ValueId value);
  // That of a value which comes from a plane, and is a vector perhaps.
  std::optional<ValueId> take_whole(ValueId value);
  // The ops of a region, which `primal` wrote last, from the last to the first.
  Status ops(const Region& region);

private:
  using Sums = std::map<ValueId, Bar>;  // what was contributed so far

  [[nodiscard]] ValueId guarded(ValueId value, ValueId taken);
  [[nodiscard]] ValueId condition(ValueId taken);
  [[nodiscard]] ValueId joined(ValueId a, ValueId b);

  Status op(const Op& op);
  void plain(const Op& op);
  void elementwise(const Op& op, const Bar& bar);
  void select(const Op& op, const Bar& bar);
  void extract(const Op& op, const Bar& bar);
  void gather(const Op& op);
  void accum_add(const Op& op);
  Status sides(const Op& op);
  Status primitive(const Op& op);

  // Loops, in reverse_loop.cpp.
  struct Loop;
  Status loop(const Op& op);
  Region loop_body(Loop& loop);
  ValueId next_stop(const Loop& loop);
  std::vector<ValueId> advance(const Loop& loop, ValueId position, const std::vector<ValueId>& state,
                               ValueId stop);
  std::vector<ValueId> reversed_trip(Loop& loop, const std::vector<ValueId>& state, Status& status);
  [[nodiscard]] Status refusal(const Op& op, Reason reason, const std::string& text) const;

  const Kernel& kernel_;
  Primal& primal_;
  Writer& w_;
  const Activity& activity_;
  std::vector<std::size_t> bar_tables_;
  Sums sums_;
  std::map<ValueId, std::vector<ValueId>> components_;  // of vectors from planes; none: no contribution
};

}  // namespace eagle::kernel::diff
