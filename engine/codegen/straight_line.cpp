#include "engine/codegen/straight_line.h"

#include <algorithm>
#include <cstddef>

#include "engine/codegen/flat.h"
#include "engine/kernel/scalar_math.h"
#include "engine/kernel/work.h"

namespace eagle::codegen {
namespace {

using kernel::Kernel;
using kernel::Op;
using kernel::Opcode;
using kernel::ValueId;

// What a math function keeps beside its operands while it computes: a reduced argument, a sum, coefficients.
constexpr int kept_by_math = 6;

// Index out of range and division by zero.
bool is_counted(const Kernel& kernel, const Op& op) {
  if (op.code == Opcode::gather || op.code == Opcode::accum_add) return true;
  const bool divides = op.code == Opcode::div || op.code == Opcode::floor_div || op.code == Opcode::modulo;
  return divides && kernel::is_integer(kernel.value_types[op.results.front()].scalar);
}

template <typename Visit>
void for_each_op(const std::vector<Op>& ops, const Visit& visit) {
  for (const Op& op : ops) {
    visit(op);
    for (const kernel::Region& region : op.regions) for_each_op(region.ops, visit);
  }
}

// The ops in the order in which they are emitted, a region's behind the op that it belongs to, and where each
// value is used for the last time.
struct Uses {
  explicit Uses(const Kernel& kernel) : last(kernel.value_types.size(), 0) { add(kernel.body.ops); }

  std::vector<const Op*> order;
  std::vector<std::size_t> last;  // by value: an index into `order`

private:
  void add(const std::vector<Op>& ops) {
    for (const Op& op : ops) {
      order.push_back(&op);
      use(op.operands);
      for (const kernel::Region& region : op.regions) {
        add(region.ops);
        use(region.yields);
      }
    }
  }
  void use(const std::vector<ValueId>& values) {
    for (const ValueId value : values) last[value] = order.size() - 1;
  }
};

}  // namespace

bool is_straight_line(const Kernel& kernel) {
  if (kernel.terminated_argument() >= 0 || kernel.shares() || kernel::has_loops(kernel)) return false;
  const std::vector<kernel::Access> accesses = kernel::accesses(kernel);
  for (std::size_t a = 0; a < accesses.size(); ++a) {
    if (kernel.arguments[a].role == kernel::Role::mutable_ && accesses[a].written) return false;
  }
  bool counted = false;
  for_each_op(kernel.body.ops, [&](const Op& op) { counted |= is_counted(kernel, op); });
  return !counted;
}

bool may_run_on(const Kernel& kernel, const std::vector<bool>& uniform) {
  if (kernel.terminated_argument() < 0 || kernel.shares() || kernel::has_loops(kernel)) return false;
  bool may = true;
  for_each_op(kernel.body.ops, [&](const Op& op) {
    const bool chooses = op.code == Opcode::if_ || op.code == Opcode::switch_;
    const bool jumps = chooses && !uniform[op.operands[0]] && !is_flat(op);
    may = may && !is_counted(kernel, op) && !jumps;
  });
  return may;
}

int vectors_kept(const Kernel& kernel, const std::vector<bool>& uniform) {
  const Uses uses(kernel);
  std::vector<int> ends(uses.order.size(), 0);  // by op: vectors that are not used any more after it
  std::vector<bool> begun(kernel.value_types.size(), false);
  int kept = 0, most = 1;
  for (std::size_t i = 0; i < uses.order.size(); ++i) {
    const Op& op = *uses.order[i];
    const auto begin = [&](ValueId value) {
      if (begun[value] || uniform[value]) return;
      begun[value] = true;
      const int vectors = kernel.value_types[value].components();
      kept += vectors;
      ends[std::max(uses.last[value], i)] += vectors;
    };
    // What is loaded is loaded where it is used first.
    for (const ValueId value : op.operands) begin(value);
    for (const ValueId value : op.results) begin(value);
    most = std::max(most, kept + (kernel::is_math(op.code) ? kept_by_math : 0));
    kept -= ends[i];
  }
  return most;
}

}  // namespace eagle::codegen
