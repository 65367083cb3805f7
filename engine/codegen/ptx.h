// Kernels as PTX, the text that NVIDIA's drivers compile.
#pragma once

#include <string>
#include <string_view>

#include "engine/codegen/compiler.h"

namespace eagle::codegen {

// A module for a GPU architecture (device_arch.h) with one kernel, `device_entry_name`, whose parameter
// device_abi.h describes. It has passed check_ptx. BAD_VALUE for an architecture that is not known;
// COMPILE_FAILED.
StatusOr<std::string> ptx_of(Compiler& compiler, const kernel::Kernel& kernel, std::string_view arch);

}  // namespace eagle::codegen
