// DeviceModules: the kernels that a device has loaded, by content hash, so that each is compiled once.
//
// Thread-safe; a kernel that two ask for at the same time may be compiled twice.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/codegen/compiler.h"
#include "engine/run/cuda/device.h"

namespace eagle::run::cuda {

class DeviceModules {
public:
  // `compiler` outlives it.
  DeviceModules(std::shared_ptr<const Device> device, codegen::Compiler& compiler);

  [[nodiscard]] const std::shared_ptr<const Device>& device() const { return device_; }
  // What compiler and driver say where it cannot be had; BAD_VALUE for a device that is too old. Beyond
  // `most_modules` the oldest is forgotten; it is unloaded when nobody uses it any more. `loaded_now`,
  // where there is one, is set where the device did not have it.
  StatusOr<std::shared_ptr<const DeviceModule>> of(const kernel::Kernel& kernel, bool* loaded_now = nullptr);
  // A module of text that is not a kernel's (routines.h).
  StatusOr<std::shared_ptr<const DeviceModule>> routine(const std::string& ptx);
  // The architecture that text is made for; empty for a device that is too old.
  [[nodiscard]] std::string_view arch() const { return arch_; }
  static constexpr std::size_t most_modules = 1'000;

private:
  std::shared_ptr<const DeviceModule> find(const std::string& key);
  std::shared_ptr<const DeviceModule> keep(const std::string& key, DeviceModule module);

  const std::shared_ptr<const Device> device_;
  codegen::Compiler& compiler_;
  std::string_view arch_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const DeviceModule>> modules_;  // by content hash or text
  std::deque<std::string> order_;                                       // oldest first
};

}  // namespace eagle::run::cuda
