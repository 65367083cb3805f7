// A kernel as a message, and the content hash that names it.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"

namespace eagle::v1 {
class Kernel;
}

namespace eagle::kernel {

// The message of a kernel; `verify(to_message(k))` gives an equal kernel.
void to_message(const Kernel& kernel, v1::Kernel& message);

// The message as bytes, for whoever sends or keeps it, and the kernel that bytes are. They come from anybody:
// BAD_MESSAGE where they are no message, else what `verify` says.
std::string to_bytes(const Kernel& kernel);
StatusOr<Kernel> from_bytes(std::string_view bytes);

// SHA-256 (64 hexadecimal digits) of what the kernel computes: roles, types, ops and dispatch groups. Names
// of the kernel, its arguments and their axes, source files and locations do not count, so equal programs
// share compiled code.
std::string content_hash(const Kernel& kernel);

}  // namespace eagle::kernel
