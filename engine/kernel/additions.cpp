#include "engine/kernel/additions.h"

namespace eagle::kernel {
namespace {

// More notes than this for every sample are not kept apart by op: the tiles would be tiny.
constexpr std::int64_t most_bytes_per_sample = 4096;

struct Finder {
  const Kernel& kernel;
  Additions found;

  void look(const Region& region, bool nested, bool in_loop) {
    for (const Op& op : region.ops) {
      if (op.code == Opcode::accum_add) {
        const Type& type = kernel.arguments[op.argument].type;
        found.sites.push_back({&op, op.argument, nested});
        found.bytes_per_sample += 8 + std::int64_t{type.components()} * bytes_of(type.scalar);
        if (in_loop) found.by_sample = false;
      }
      for (const Region& inner : op.regions) look(inner, true, in_loop || op.code == Opcode::while_);
    }
  }
};

}  // namespace

Additions additions_of(const Kernel& kernel) {
  Finder finder{kernel, {}};
  finder.look(kernel.body, false, false);
  if (finder.found.bytes_per_sample > most_bytes_per_sample) finder.found.by_sample = false;
  return std::move(finder.found);
}

}  // namespace eagle::kernel
