#include "engine/kernel/ir.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

namespace eagle::kernel {
namespace {

// What the ops of a region and of those inside it look at.
struct Uses {
  std::vector<bool> values;  // by ValueId
  std::vector<bool> tables;  // by argument index; accumulators too

  void mark(const Region& region) {
    for (const Op& op : region.ops) {
      for (const ValueId operand : op.operands) values[operand] = true;
      if (op.code == Opcode::gather || op.code == Opcode::accum_add) tables[op.argument] = true;
      for (const Region& nested : op.regions) mark(nested);
    }
    for (const ValueId yield : region.yields) values[yield] = true;
  }
};

}  // namespace

std::string_view name_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::f64:
      return "f64";
    case Scalar::f32:
      return "f32";
    case Scalar::i64:
      return "i64";
    case Scalar::i32:
      return "i32";
    case Scalar::boolean:
      return "bool";
  }
  return "?";
}

std::string_view name_of(Role role) {
  switch (role) {
    case Role::read:
      return "read";
    case Role::mutable_:
      return "mutable";
    case Role::output:
      return "output";
    case Role::param:
      return "param";
    case Role::terminated:
      return "terminated";
    case Role::table:
      return "table";
    case Role::accum:
      return "accum";
    case Role::reduce:
      return "reduce";
  }
  return "?";
}

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::max:
      return "max";
    case ReduceOp::min:
      return "min";
    case ReduceOp::all:
      return "all";
    case ReduceOp::any:
      return "any";
  }
  return "?";
}

std::uint64_t neutral_bits(ReduceOp op, Scalar scalar) {
  const auto bits = [](auto value) {
    std::uint64_t result = 0;
    std::memcpy(&result, &value, sizeof(value));
    return result;
  };
  // The lowest number for a maximum, the highest for a minimum.
  const auto extreme = [&]<typename T>(T) {
    using Range = std::numeric_limits<T>;
    const bool lowest = op == ReduceOp::max;
    if constexpr (Range::has_infinity) return bits(lowest ? -Range::infinity() : Range::infinity());
    return bits(lowest ? Range::lowest() : Range::max());
  };
  switch (scalar) {
    case Scalar::f64:
      return op == ReduceOp::sum ? bits(-0.0) : extreme(0.0);
    case Scalar::f32:
      return op == ReduceOp::sum ? bits(-0.0f) : extreme(0.0f);
    case Scalar::i64:
      return op == ReduceOp::sum ? 0 : extreme(std::int64_t{0});
    case Scalar::i32:
      return op == ReduceOp::sum ? 0 : extreme(std::int32_t{0});
    case Scalar::boolean:
      return op == ReduceOp::all ? 1 : 0;
  }
  return 0;
}

std::string_view name_of(DispatchPolicy policy) {
  switch (policy) {
    case DispatchPolicy::automatic:
      return "auto";
    case DispatchPolicy::switch_:
      return "switch";
    case DispatchPolicy::segmented:
      return "segmented";
    case DispatchPolicy::predicated:
      return "predicated";
  }
  return "?";
}

std::string to_string(const Type& type) {
  std::string text(name_of(type.scalar));
  if (type.rank == 0) return text;
  text += "[" + std::to_string(type.extents[0]);
  if (type.rank == 2) text += "," + std::to_string(type.extents[1]);
  return text + "]";
}

bool operator==(const Region& a, const Region& b) {
  return a.arguments == b.arguments && a.ops == b.ops && a.yields == b.yields;
}

int Kernel::terminated_argument() const {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].role == Role::terminated) return static_cast<int>(i);
  }
  return -1;
}

bool Kernel::shares() const {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const Argument& argument) { return is_shared(argument.role); });
}

std::size_t scalar_values(const Kernel& kernel) {
  std::size_t total = 0;
  for (const Type& type : kernel.value_types) total += static_cast<std::size_t>(type.components());
  return total;
}

std::vector<Access> accesses(const Kernel& kernel) {
  Uses used{std::vector<bool>(kernel.value_types.size()), std::vector<bool>(kernel.arguments.size())};
  used.mark(kernel.body);

  // A stopped sample keeps what was there before the launch, so with a mask every store is conditional.
  const bool masked = kernel.terminated_argument() >= 0;
  std::vector<Access> result;
  result.reserve(kernel.arguments.size());
  std::size_t entry = 0;
  std::size_t commit = 0;
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    const Role role = kernel.arguments[i].role;
    const bool has_entry = has_entry_value(role);
    const ValueId entry_value = has_entry ? kernel.body.arguments[entry++] : 0;
    Access access;
    access.used = role == Role::table ? used.tables[i] : has_entry && used.values[entry_value];
    if (is_committed(role)) {
      const ValueId committed = kernel.body.yields[commit++];
      access.written = role != Role::mutable_ || committed != entry_value;
      // The one element of a reduction is stored whatever the masks are.
      const bool may_stay = masked && role != Role::reduce;
      access.read = access.used || (access.written && may_stay);
    } else if (role == Role::accum) {
      access.read = access.written = access.used = used.tables[i];
    } else if (has_plane(role)) {
      access.read = access.used;
    }
    result.push_back(access);
  }
  return result;
}

}  // namespace eagle::kernel
