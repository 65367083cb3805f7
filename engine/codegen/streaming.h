// Streaming: which stores of a kernel may go past the caches, where the engine asks for it.
//
// Such a store does not fetch the line that it overwrites, which saves a third of the traffic of y = a x + b;
// what reads the plane next has to get it from memory.
#pragma once

#include <cstdint>

#include "engine/kernel/ir.h"
#include "engine/kernel/work.h"

namespace eagle::codegen {

// The address of a plane that is streamed to, and the distance of its components, are multiples of this, and
// so is the sample that a call begins with.
inline constexpr std::int64_t streaming_alignment = 64;

// Not where lanes may keep what they had, or samples make something together.
inline bool may_stream(const kernel::Kernel& kernel) {
  return kernel.terminated_argument() < 0 && !kernel.shares() && !kernel::has_loops(kernel);
}

// An argument of such a kernel that is stored to and never loaded: what was loaded is in the caches anyway.
inline bool is_streamed(const kernel::Argument& argument, const kernel::Access& access) {
  return argument.role == kernel::Role::output && argument.type.scalar != kernel::Scalar::boolean &&
         access.written && !access.read;
}

}  // namespace eagle::codegen
