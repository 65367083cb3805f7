#include "engine/run/cuda/device_modules.h"

#include <utility>

#include "engine/codegen/device_abi.h"
#include "engine/codegen/device_arch.h"
#include "engine/codegen/ptx.h"
#include "engine/kernel/wire.h"
#include "engine/run/cuda/routines.h"

namespace eagle::run::cuda {

DeviceModules::DeviceModules(std::shared_ptr<const Device> device, codegen::Compiler& compiler)
    : device_(std::move(device)), compiler_(compiler) {
  const auto arch = codegen::device_arch_for(device_->info().major, device_->info().minor);
  if (arch.ok()) arch_ = arch->name;
}

std::shared_ptr<const DeviceModule> DeviceModules::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = modules_.find(key);
  return found == modules_.end() ? nullptr : found->second;
}

std::shared_ptr<const DeviceModule> DeviceModules::keep(const std::string& key, DeviceModule loaded) {
  auto module = std::make_shared<const DeviceModule>(std::move(loaded));
  const std::lock_guard lock(mutex_);
  const auto [there, added] = modules_.emplace(key, std::move(module));
  const auto kept = there->second;  // who was first has it for all
  if (added) order_.push_back(key);
  if (order_.size() > most_modules) {
    modules_.erase(order_.front());
    order_.pop_front();
  }
  return kept;
}

StatusOr<std::shared_ptr<const DeviceModule>> DeviceModules::of(const kernel::Kernel& kernel,
                                                                bool* loaded_now) {
  const std::string hash = kernel::content_hash(kernel);
  if (auto found = find(hash)) return found;
  const DeviceInfo& info = device_->info();
  EAGLE_ASSIGN_OR_RETURN(const codegen::DeviceArch arch, codegen::device_arch_for(info.major, info.minor));
  EAGLE_ASSIGN_OR_RETURN(const std::string ptx, codegen::ptx_of(compiler_, kernel, arch.name));
  EAGLE_ASSIGN_OR_RETURN(DeviceModule loaded, DeviceModule::load(device_, ptx, codegen::device_entry_name));
  if (loaded_now != nullptr) *loaded_now = true;
  return keep(hash, std::move(loaded));
}

StatusOr<std::shared_ptr<const DeviceModule>> DeviceModules::routine(const std::string& ptx) {
  if (auto found = find(ptx)) return found;
  const DeviceInfo& info = device_->info();
  EAGLE_RETURN_IF_ERROR(codegen::device_arch_for(info.major, info.minor).status());
  EAGLE_ASSIGN_OR_RETURN(DeviceModule loaded, DeviceModule::load(device_, ptx, routine_entry));
  return keep(ptx, std::move(loaded));
}

}  // namespace eagle::run::cuda
