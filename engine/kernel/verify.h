// The verifier: the only way from a kernel message to a kernel.
//
// It is total. For any message it returns a kernel that satisfies every rule, or INVALID_ARGUMENT /
// MALFORMED_KERNEL whose text gives the path of the offending part ("body.ops[3].regions[0].ops[1]"),
// what was expected and what was found, or RESOURCE_EXHAUSTED / KERNEL_LIMIT naming the limit. It uses
// time and memory linear in the message and no recursion deeper than Limits::depth. Unknown enum values
// are errors; unknown fields are too (a field that this version does not understand could change what
// the kernel means).
#pragma once

#include <cstdint>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"

namespace eagle::v1 {
class Kernel;
}

namespace eagle::kernel {

struct Limits {
  // In one kernel, nested ones included. An `if` counts once for every value that it yields, a loop for every
  // value that it carries, a switch for every value that each of its regions yields, a gather for every axis,
  // random words for 32;
  // all of them count at least once, and a switch once for every region. (kernel_ops)
  std::uint32_t ops = 16'384;
  std::uint32_t scalar_ops = 65'536;  // ops weighed by the components of their results (kernel_scalar_ops)
  std::uint32_t depth = 32;           // of nested regions     (kernel_depth)
  std::uint32_t arguments = 256;      // of one kernel         (kernel_arguments)
  std::uint32_t components = 64;      // of one value          (kernel_components)
  std::uint32_t name_bytes = 10'240;  // of a name             (kernel_name_bytes)
  std::uint64_t loop_trips = 1ull << 40;    // of one loop           (kernel_loop_trips)
  std::uint32_t table_elements = 1u << 31;  // of a table with axes  (kernel_table_elements)
  std::uint32_t switch_regions = 64;        // of one switch         (kernel_switch_regions)
};

StatusOr<Kernel> verify(const v1::Kernel& message, const Limits& limits = {});

}  // namespace eagle::kernel
