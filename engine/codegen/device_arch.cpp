#include "engine/codegen/device_arch.h"

#include <array>

namespace eagle::codegen {
namespace {

// Versions: NVIDIA, "PTX ISA", release notes: which .target each version brought.
constexpr std::array archs = {DeviceArch{"sm_75", 75, 63}, DeviceArch{"sm_80", 80, 70},
                              DeviceArch{"sm_86", 86, 71}, DeviceArch{"sm_87", 87, 74},
                              DeviceArch{"sm_89", 89, 78}, DeviceArch{"sm_90", 90, 78}};

}  // namespace

std::span<const DeviceArch> device_archs() { return archs; }

StatusOr<DeviceArch> find_device_arch(std::string_view name) {
  std::string known;
  for (const DeviceArch& arch : archs) {
    if (arch.name == name) return arch;
    known += (known.empty() ? "" : ", ") + std::string(arch.name);
  }
  return Status(Reason::bad_value, "no GPU architecture '" + std::string(name.substr(0, 40)) +
                                       "'; expected one of " + known + " (newer GPUs run code of the last)");
}

StatusOr<DeviceArch> device_arch_for(int major, int minor) {
  const int capability = 10 * major + minor;
  for (auto arch = archs.rbegin(); arch != archs.rend(); ++arch) {
    if (arch->capability <= capability) return *arch;
  }
  return Status(Reason::bad_value, "a GPU of compute capability " + std::to_string(major) + "." +
                                       std::to_string(minor) + " is too old; expected 7.5 or newer");
}

}  // namespace eagle::codegen
