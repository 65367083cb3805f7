#include "engine/diff/step_cell.h"

#include <algorithm>
#include <utility>

#include "engine/kernel/copier.h"

namespace eagle::diff {
namespace {

using kernel::Op;
using kernel::Opcode;
using kernel::Region;

constexpr kernel::Type cell_i64{kernel::Scalar::i64, 0, {1, 1}};

bool asks(const Region& region) {
  return std::any_of(region.ops.begin(), region.ops.end(), [](const Op& op) {
    return op.code == Opcode::step_index || std::any_of(op.regions.begin(), op.regions.end(), asks);
  });
}

// The value before all others is the step's: every use is of that one.
class Replacing : public kernel::Copier {
public:
  using Copier::Copier;

  void region(const Region& from, Region& to, kernel::ValueId step) {
    for (const kernel::ValueId carried : from.arguments) {
      map(carried, fresh(type_of(carried)));
      to.arguments.push_back(now(carried));
    }
    for (const Op& op : from.ops) {
      if (op.code == Opcode::step_index) {
        map(op.results.front(), step);
        continue;
      }
      Op made = op;
      for (kernel::ValueId& operand : made.operands) operand = now(operand);
      for (std::size_t r = 0; r < op.regions.size(); ++r) {
        made.regions[r] = {};
        region(op.regions[r], made.regions[r], step);
      }
      for (kernel::ValueId& result : made.results) {
        const kernel::ValueId old = result;
        result = fresh(type_of(old));
        map(old, result);
      }
      to.ops.push_back(std::move(made));
    }
    for (const kernel::ValueId yield : from.yields) to.yields.push_back(now(yield));
  }
};

}  // namespace

bool asks_for_step(const kernel::Kernel& kernel) { return asks(kernel.body); }

kernel::Kernel with_step_cell(const kernel::Kernel& kernel, const std::string& name) {
  Replacing copier(kernel);
  std::size_t entry = 0;
  for (const kernel::Argument& argument : kernel.arguments) {
    const bool has = kernel::has_entry_value(argument.role);
    copier.argument(argument, has ? kernel.body.arguments[entry] : kernel::unmapped);
    if (has) ++entry;
  }
  const auto table = static_cast<std::uint32_t>(copier.out.arguments.size());
  kernel::Argument cell;
  cell.name = name;
  cell.role = kernel::Role::table;
  cell.type = cell_i64;
  copier.out.arguments.push_back(std::move(cell));
  copier.out.derivative_of = kernel.derivative_of;

  Region& body = copier.out.body;
  const kernel::ValueId zero = copier.add(body, Opcode::constant, {}, i64, 0);
  const kernel::ValueId step = copier.add(body, Opcode::gather, {zero}, cell_i64);
  body.ops.back().argument = table;
  Region from = kernel.body;
  from.arguments.clear();  // mapped above
  copier.region(from, body, step);
  return std::move(copier.out);
}

}  // namespace eagle::diff
