// A kernel as a message, and the content hash that names it.
#pragma once

#include <string>

#include "engine/kernel/ir.h"

namespace eagle::v1 {
class Kernel;
}

namespace eagle::kernel {

// The message of a kernel; `verify(to_message(k))` gives an equal kernel.
void to_message(const Kernel& kernel, v1::Kernel& message);

// SHA-256 (64 hexadecimal digits) of what the kernel computes: roles, types, ops and dispatch groups. Names
// of the kernel, its arguments and their axes, source files and locations do not count, so equal programs
// share compiled code.
std::string content_hash(const Kernel& kernel);

}  // namespace eagle::kernel
