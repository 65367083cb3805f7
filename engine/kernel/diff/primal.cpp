#include "engine/kernel/diff/primal.h"

namespace eagle::kernel::diff {

Op Primal::moved(const Op& op) const {
  Op made;
  made.code = op.code;
  made.bits = op.bits;
  made.component = op.component;
  made.max_trips = op.max_trips;
  made.location = op.location;
  if (op.code == Opcode::gather || op.code == Opcode::length)
    made.argument = static_cast<std::uint32_t>(tables_.at(op.argument));
  made.operands = now(op.operands);
  return made;
}

std::vector<ValueId> Primal::results_of(const Op& op) {
  std::vector<ValueId> results;
  for (const ValueId old : op.results) {
    results.push_back(w_.fresh(type(old)));
    map_[old] = results.back();
  }
  return results;
}

Region Primal::region(const Region& from) {
  w_.begin();
  for (const ValueId argument : from.arguments) map_[argument] = w_.region_argument(type(argument));
  ops(from);
  return w_.end(now(from.yields));
}

void Primal::op(const Op& op) {
  // What samples make together is not for the derivative to make again.
  if (op.code == Opcode::accum_add) return;
  if (op.code == Opcode::step_index && step_ != none) return map(op.results[0], step_);
  if (op.code == Opcode::while_ && counts_trips_) return loop(op);
  Op made = moved(op);
  for (const Region& nested : op.regions) made.regions.push_back(region(nested));
  made.results = results_of(op);
  w_.push(std::move(made));
}

// One more value is carried: the trips so far.
void Primal::loop(const Op& op) {
  Op made = moved(op);
  made.operands.push_back(w_.integer(0));

  w_.begin();
  for (const ValueId argument : op.regions[0].arguments) map_[argument] = w_.region_argument(type(argument));
  w_.region_argument(integer_type);
  ops(op.regions[0]);
  made.regions.push_back(w_.end(now(op.regions[0].yields)));

  w_.begin();
  for (const ValueId argument : op.regions[1].arguments) map_[argument] = w_.region_argument(type(argument));
  const ValueId count = w_.region_argument(integer_type);
  ops(op.regions[1]);
  std::vector<ValueId> next = now(op.regions[1].yields);
  next.push_back(w_.add(count, w_.integer(1)));
  made.regions.push_back(w_.end(std::move(next)));

  made.results = results_of(op);
  made.results.push_back(w_.fresh(integer_type));
  trips_[&op] = made.results.back();
  w_.push(std::move(made));
}

}  // namespace eagle::kernel::diff
