#include "engine/kernel/work.h"

#include <algorithm>
#include <cstdint>

namespace eagle::kernel {
namespace {

// Trips of a loop that may make more.
constexpr std::uint64_t usual_trips = 32;

// Of loading or storing an element, from the second-level cache.
constexpr double work_of_plane = 4;

double of_op(Opcode code) {
  if (code == Opcode::constant) return 0;
  if (code == Opcode::div || code == Opcode::sqrt) return 8;
  if (code == Opcode::gather || code == Opcode::accum_add || code == Opcode::floor_div ||
      code == Opcode::modulo)
    return 16;
  // The functions of engine/kernel/math, and random words: some twenty to a hundred operations each.
  const bool simple = code == Opcode::fma || code < Opcode::pow ||
                      (code >= Opcode::floor && code <= Opcode::rint) ||
                      (code >= Opcode::sign && code <= Opcode::isfinite);
  return simple ? 1 : 40;
}

double of_region(const Kernel& kernel, const Region& region) {
  double work = 0;
  for (const Op& op : region.ops) {
    double inside = 0;
    for (const Region& nested : op.regions) inside += of_region(kernel, nested);
    if (op.code == Opcode::while_) inside *= static_cast<double>(std::min(op.max_trips, usual_trips));
    const int components = op.results.empty() ? 1 : kernel.value_types[op.results.front()].components();
    work += inside + of_op(op.code) * components;
  }
  return work;
}

bool loops_in(const Region& region) {
  return std::any_of(region.ops.begin(), region.ops.end(), [](const Op& op) {
    return op.code == Opcode::while_ || std::any_of(op.regions.begin(), op.regions.end(), loops_in);
  });
}

}  // namespace

bool has_loops(const Kernel& kernel) { return loops_in(kernel.body); }

double work_of(const Kernel& kernel) {
  double work = 0;
  for (const Argument& argument : kernel.arguments) {
    if (has_plane(argument.role)) work += work_of_plane * argument.type.components();
  }
  return work + of_region(kernel, kernel.body);
}

}  // namespace eagle::kernel
