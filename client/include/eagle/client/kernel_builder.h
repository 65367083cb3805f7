// KernelBuilder for C++ clients: see engine/kernel/builder.h, whose contract this is.
#pragma once

#include "engine/kernel/builder.h"

namespace eagle {

using kernel::KernelBuilder;

}  // namespace eagle
