#include "engine/codegen/ptx.h"

#include "engine/codegen/device_arch.h"

namespace eagle::codegen {

StatusOr<std::string> ptx_of(Compiler& compiler, const kernel::Kernel& kernel, std::string_view arch) {
  EAGLE_ASSIGN_OR_RETURN(const DeviceArch known, find_device_arch(arch));
  return compiler.listing(kernel, Target{std::string(known.name)}, "assembly");
}

}  // namespace eagle::codegen
