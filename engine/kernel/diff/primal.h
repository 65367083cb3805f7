// Primal: writes what the kernel itself computes into its derivative, as often as it is needed. Inside of
// this folder alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/kernel/diff/writer.h"
#include "engine/kernel/ir.h"

namespace eagle::kernel::diff {

class Primal {
public:
  // `counts_trips`: loops tell how many trips they took.
  Primal(const Kernel& kernel, Writer& w, bool counts_trips)
      : kernel_(kernel), w_(w), counts_trips_(counts_trips), map_(kernel.value_types.size(), none) {}

  [[nodiscard]] const Kernel& kernel() const { return kernel_; }
  [[nodiscard]] const Type& type(ValueId old) const { return kernel_.value_types[old]; }
  // The value as it was written last.
  [[nodiscard]] ValueId now(ValueId old) const { return map_[old]; }
  [[nodiscard]] std::vector<ValueId> now(const std::vector<ValueId>& olds) const {
    std::vector<ValueId> values;
    values.reserve(olds.size());
    for (const ValueId old : olds) values.push_back(map_[old]);
    return values;
  }
  void map(ValueId old, ValueId now) { map_[old] = now; }
  void map(const std::vector<ValueId>& olds, const std::vector<ValueId>& values) {
    for (std::size_t i = 0; i < olds.size(); ++i) map_[olds[i]] = values[i];
  }
  // Where the table of that argument is in the derivative.
  void table_at(std::size_t argument, std::size_t place) { tables_[argument] = place; }
  [[nodiscard]] std::size_t table(std::size_t argument) const { return tables_.at(argument); }
  // What step_index() is instead; none: the op itself.
  void step_is(ValueId value) { step_ = value; }
  // Of a loop that was written with a count: an i64.
  [[nodiscard]] ValueId trips(const Op& loop) const { return trips_.at(&loop); }

  void ops(const Region& region) {
    for (const Op& op : region.ops) this->op(op);
  }
  void op(const Op& op);
  // The op with the operands of now, for whoever adds to its regions and results.
  [[nodiscard]] Op moved(const Op& op) const;
  // Results of an op that was just written.
  std::vector<ValueId> results_of(const Op& op);

private:
  Region region(const Region& from);
  void loop(const Op& op);

  const Kernel& kernel_;
  Writer& w_;
  bool counts_trips_;
  std::vector<ValueId> map_;
  std::unordered_map<std::size_t, std::size_t> tables_;
  std::unordered_map<const Op*, ValueId> trips_;
  ValueId step_ = none;
};

}  // namespace eagle::kernel::diff
