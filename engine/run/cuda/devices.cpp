#include "engine/run/cuda/devices.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace eagle::run::cuda {
namespace {

std::string listed(const std::vector<DeviceInfo>& all) {
  std::string text;
  for (const DeviceInfo& one : all) text += (text.empty() ? "" : ", ") + text_of(one);
  return text.empty() ? "none" : text;
}

// The number behind "cuda:", -1 for plain "cuda"; nothing for another name.
std::optional<int> ordinal_of(std::string_view name) {
  if (name == "cuda") return -1;
  if (!name.starts_with("cuda:")) return {};
  const std::string_view digits = name.substr(5);
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0) return {};
  return number;
}

}  // namespace

bool is_cpu(std::string_view device) { return device.empty() || device == "cpu"; }

StatusOr<std::shared_ptr<const Driver>> Devices::driver() {
  if (driver_ == nullptr) {
    EAGLE_ASSIGN_OR_RETURN(driver_, Driver::open());
  }
  return driver_;
}

StatusOr<std::vector<DeviceInfo>> Devices::may_use() {
  if (chosen_ && chosen_->empty()) return std::vector<DeviceInfo>();
  EAGLE_ASSIGN_OR_RETURN(const auto driver, this->driver());
  EAGLE_ASSIGN_OR_RETURN(std::vector<DeviceInfo> all, driver->devices());
  if (chosen_) {
    std::erase_if(all, [&](const DeviceInfo& one) {
      return std::find(chosen_->begin(), chosen_->end(), one.uuid) == chosen_->end();
    });
  }
  return all;
}

std::vector<std::shared_ptr<const Devices::Unit>> Devices::opened() const {
  std::vector<std::shared_ptr<const Unit>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [ordinal, unit] : opened_) all.push_back(unit);
  return all;
}

StatusOr<std::shared_ptr<const Devices::Unit>> Devices::open(const DeviceInfo& info) {
  std::shared_ptr<const Unit>& known = opened_[info.ordinal];
  if (known != nullptr) return known;
  auto device = Device::open(driver_, info.ordinal, on_lost_);
  if (!device.ok()) {
    opened_.erase(info.ordinal);
    return device.status();
  }
  auto unit = std::make_shared<Unit>();
  unit->device = *device;
  unit->modules = std::make_unique<DeviceModules>(*std::move(device), compiler_);
  return known = std::move(unit);
}

StatusOr<std::shared_ptr<const Devices::Unit>> Devices::find(std::string_view name) {
  const std::string where = "device '" + std::string(name) + "'";
  const std::optional<int> ordinal = ordinal_of(name);
  if (!ordinal && !name.starts_with("GPU-")) {
    return Status(Reason::bad_value,
                  where + ": expected 'cpu', 'cuda:0', 'cuda:1', ... or a GPU's UUID ('GPU-...')");
  }
  const std::lock_guard lock(mutex_);
  const auto all = may_use();
  if (!all.ok()) return all.status().within(where);
  const auto found = std::find_if(all->begin(), all->end(), [&](const DeviceInfo& one) {
    return ordinal ? *ordinal < 0 || one.ordinal == *ordinal : one.uuid == name;
  });
  if (found != all->end()) return open(*found);
  if (chosen_ && chosen_->empty()) {
    return Status(Reason::bad_value,
                  where + ": this host was told to use no GPU (--devices none); use 'cpu'");
  }
  return Status(Reason::bad_value,
                where + ": there is none; the GPUs that may be used: " + listed(*all) +
                    (all->empty() ? "; look at CUDA_VISIBLE_DEVICES and nvidia-smi, or use 'cpu'" : ""));
}

Status wait_for_stream(std::string_view uuid, std::optional<std::uint64_t> stream) {
  EAGLE_ASSIGN_OR_RETURN(const auto device, open_by_uuid(uuid));
  if (!stream)
    return device->run("cuCtxSynchronize",
                       [](const api::Functions& call) { return call.cuCtxSynchronize(); });
  return device->run("cuStreamSynchronize", [&](const api::Functions& call) {
    return call.cuStreamSynchronize(reinterpret_cast<api::Stream>(*stream));
  });
}

StatusOr<std::shared_ptr<const Device>> open_by_uuid(std::string_view uuid) {
  EAGLE_ASSIGN_OR_RETURN(auto driver, Driver::open());
  EAGLE_ASSIGN_OR_RETURN(const std::vector<DeviceInfo> all, driver->devices());
  for (const DeviceInfo& one : all) {
    if (one.uuid == uuid) return Device::open(std::move(driver), one.ordinal);
  }
  return Status(Reason::mixed_devices,
                "memory of " + std::string(uuid) + " cannot be opened here: this process sees " +
                    listed(all) +
                    "; make that GPU visible to it (CUDA_VISIBLE_DEVICES), or copy the values (.numpy())");
}

}  // namespace eagle::run::cuda
