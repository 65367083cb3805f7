#include "engine/kernel/ir.h"

#include <cstddef>

namespace eagle::kernel {
namespace {

void mark_used(const Region& region, std::vector<bool>& used) {
  for (const Op& op : region.ops) {
    for (const ValueId operand : op.operands) used[operand] = true;
    for (const Region& nested : op.regions) mark_used(nested, used);
  }
  for (const ValueId yield : region.yields) used[yield] = true;
}

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

std::vector<Access> accesses(const Kernel& kernel) {
  std::vector<bool> used(kernel.value_types.size());
  mark_used(kernel.body, used);

  // A stopped sample keeps what was there before the launch, so with a mask every store is conditional.
  const bool masked = kernel.terminated_argument() >= 0;
  std::vector<Access> result;
  result.reserve(kernel.arguments.size());
  std::size_t entry = 0;
  std::size_t commit = 0;
  for (const Argument& argument : kernel.arguments) {
    const Role role = argument.role;
    const bool has_entry = has_entry_value(role);
    const ValueId entry_value = has_entry ? kernel.body.arguments[entry++] : 0;
    Access access;
    if (is_committed(role)) {
      const ValueId committed = kernel.body.yields[commit++];
      access.written = role != Role::mutable_ || committed != entry_value;
      access.read = (has_entry && used[entry_value]) || (access.written && masked);
    } else if (has_plane(role)) {
      access.read = used[entry_value];
    }
    result.push_back(access);
  }
  return result;
}

}  // namespace eagle::kernel
