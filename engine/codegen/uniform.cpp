#include "engine/codegen/uniform.h"

#include <algorithm>

namespace eagle::codegen {
namespace {

using kernel::Op;
using kernel::Opcode;
using kernel::Region;
using kernel::ValueId;

class Analysis {
public:
  explicit Analysis(const kernel::Kernel& kernel) : uniform_(kernel.value_types.size(), false) {
    std::size_t entry = 0;
    for (const kernel::Argument& argument : kernel.arguments) {
      if (!kernel::has_entry_value(argument.role)) continue;
      const ValueId id = kernel.body.arguments[entry++];
      // A sample that runs is not finished: the mask's entry value is false for all.
      uniform_[id] = argument.role == kernel::Role::param || argument.role == kernel::Role::terminated;
    }
    region(kernel.body);
  }

  std::vector<bool> take() { return std::move(uniform_); }

private:
  bool all(const std::vector<ValueId>& values) const {
    return std::ranges::all_of(values, [this](ValueId id) { return uniform_[id]; });
  }

  void region(const Region& region) {
    for (const Op& op : region.ops) visit(op);
  }

  void visit(const Op& op) {
    switch (op.code) {
      case Opcode::sample_index:
      case Opcode::random_words:
        uniform_[op.results[0]] = false;
        return;
      case Opcode::accum_add:
        return;
      case Opcode::if_:
      case Opcode::switch_: {
        for (const Region& side : op.regions) region(side);
        for (std::size_t r = 0; r < op.results.size(); ++r) {
          bool same = uniform_[op.operands[0]];
          for (const Region& side : op.regions) same = same && uniform_[side.yields[r]];
          uniform_[op.results[r]] = same;
        }
        return;
      }
      case Opcode::primitive: {
        const Region& value = op.regions[0];
        for (std::size_t i = 0; i < op.operands.size(); ++i)
          uniform_[value.arguments[i]] = uniform_[op.operands[i]];
        region(value);
        for (std::size_t r = 0; r < op.results.size(); ++r)
          uniform_[op.results[r]] = uniform_[value.yields[r]];
        return;
      }
      case Opcode::while_:
        return loop(op);
      default:
        uniform_[op.results[0]] = all(op.operands);
    }
  }

  // Assumes that all carried values stay uniform and takes back what does not hold, until nothing changes:
  // at most one round for each carried value and one more. Nested loops make that a product, so it is cut
  // short: after a few rounds nothing is uniform.
  void loop(const Op& op) {
    const Region& condition = op.regions[0];
    const Region& body = op.regions[1];
    std::vector<bool> carried;
    for (const ValueId id : op.operands) carried.push_back(uniform_[id]);
    for (int round = 0;; ++round) {
      if (round == max_rounds) carried.assign(carried.size(), false);
      for (std::size_t i = 0; i < carried.size(); ++i) {
        uniform_[condition.arguments[i]] = carried[i];
        uniform_[body.arguments[i]] = carried[i];
      }
      region(condition);
      const bool same_trips = uniform_[condition.yields[0]];
      region(body);
      bool changed = false;
      for (std::size_t i = 0; i < carried.size(); ++i) {
        const bool stays = carried[i] && same_trips && uniform_[body.yields[i]];
        changed = changed || stays != carried[i];
        carried[i] = stays;
      }
      if (!changed) break;
    }
    for (std::size_t i = 0; i < carried.size(); ++i) uniform_[op.results[i]] = carried[i];
  }

  static constexpr int max_rounds = 4;
  std::vector<bool> uniform_;
};

}  // namespace

std::vector<bool> uniform_values(const kernel::Kernel& kernel) { return Analysis(kernel).take(); }

}  // namespace eagle::codegen
