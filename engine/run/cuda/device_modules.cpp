#include "engine/run/cuda/device_modules.h"

#include <utility>

#include "engine/codegen/device_abi.h"
#include "engine/codegen/device_arch.h"
#include "engine/codegen/ptx.h"
#include "engine/kernel/wire.h"

namespace eagle::run::cuda {

DeviceModules::DeviceModules(std::shared_ptr<const Device> device, codegen::Compiler& compiler)
    : device_(std::move(device)), compiler_(compiler) {}

StatusOr<std::shared_ptr<const DeviceModule>> DeviceModules::of(const kernel::Kernel& kernel) {
  const std::string hash = kernel::content_hash(kernel);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = modules_.find(hash); found != modules_.end()) return found->second;
  }
  const DeviceInfo& info = device_->info();
  EAGLE_ASSIGN_OR_RETURN(const codegen::DeviceArch arch, codegen::device_arch_for(info.major, info.minor));
  EAGLE_ASSIGN_OR_RETURN(const std::string ptx, codegen::ptx_of(compiler_, kernel, arch.name));
  EAGLE_ASSIGN_OR_RETURN(DeviceModule loaded, DeviceModule::load(device_, ptx, codegen::device_entry_name));
  const auto module = std::make_shared<const DeviceModule>(std::move(loaded));
  const std::lock_guard lock(mutex_);
  if (modules_.emplace(hash, module).second) order_.push_back(hash);
  if (order_.size() > most_modules) {
    modules_.erase(order_.front());
    order_.pop_front();
  }
  return module;
}

}  // namespace eagle::run::cuda
