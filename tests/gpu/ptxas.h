// ptxas, NVIDIA's assembler of PTX: the judge of what we emit, where there is no GPU.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace eagle::gpu_tests {

// Assembles a module for an architecture; what ptxas says where it refuses, or the shell where there is none.
// EAGLE_PTXAS names the program (tests/run.sh sets it), else PATH is searched.
Status assemble(std::string_view ptx, std::string_view arch);

}  // namespace eagle::gpu_tests
