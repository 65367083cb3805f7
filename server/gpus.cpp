#include "server/gpus.h"

#include <algorithm>
#include <utility>

namespace eagle::server {

GpuMemory::~GpuMemory() {
  memory_ = {};
  gpus_->give_back(*unit_, charged_, 1);
}

Gpus::Gpus(codegen::Compiler& compiler, run::cuda::Devices::Chosen chosen, std::uint64_t budget_bytes,
           Events events)
    : devices_(compiler, std::move(chosen),
               [this](const auto& gpu, const Status& why) { tell_lost(gpu, why); }),
      budget_bytes_(budget_bytes),
      events_(std::move(events)) {}

void Gpus::forget_events() {
  const std::lock_guard lock(events_mutex_);
  events_ = {};
}

void Gpus::tell_lost(const run::cuda::DeviceInfo& gpu, const Status& why) {
  const std::lock_guard lock(events_mutex_);
  if (events_.lost) events_.lost(gpu, why);
}

StatusOr<std::shared_ptr<const run::cuda::Devices::Unit>> Gpus::find(std::string_view device) {
  EAGLE_ASSIGN_OR_RETURN(auto unit, devices_.find(device));
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = used_.emplace(unit->info().uuid, unit).second;
  }
  if (!first) return unit;
  const std::lock_guard lock(events_mutex_);
  if (events_.used) events_.used(unit->info());
  return unit;
}

std::vector<std::shared_ptr<const run::cuda::Devices::Unit>> Gpus::used() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const run::cuda::Devices::Unit>> all;
  for (const auto& [uuid, unit] : used_) all.push_back(unit);
  return all;
}

std::uint64_t Gpus::budget_of(const run::cuda::DeviceInfo& info) const {
  return budget_bytes_ != 0 ? budget_bytes_ : info.bytes / 4 * 3;
}

Status Gpus::charge(const run::cuda::Devices::Unit& unit, std::uint64_t bytes, std::string_view what,
                    std::uint64_t planes) {
  const std::uint64_t budget = budget_of(unit.info());
  const std::lock_guard lock(mutex_);
  Taken& taken = taken_[unit.info().uuid];
  if (taken.bytes > budget || bytes > budget - taken.bytes) {
    return {
        Reason::plane_budget,
        std::string(what) + " of " + std::to_string(bytes) + " bytes " + (planes == 1 ? "does" : "do") +
            " not fit on " + text_of(unit.info()) + ": " + std::to_string(taken.bytes) +
            " of its budget of " + std::to_string(budget) +
            " bytes are in use; release planes, use smaller ones or another GPU, or start the daemon with "
            "a larger --device-budget"};
  }
  taken.planes += planes;
  taken.bytes += bytes;
  return {};
}

void Gpus::give_back(const run::cuda::Devices::Unit& unit, std::uint64_t bytes, std::uint64_t planes) {
  const std::lock_guard lock(mutex_);
  Taken& taken = taken_[unit.info().uuid];
  taken.planes -= planes;
  taken.bytes -= bytes;
}

StatusOr<std::shared_ptr<const GpuMemory>> Gpus::make(std::string_view device, std::uint64_t bytes) {
  EAGLE_ASSIGN_OR_RETURN(const auto unit, find(device));
  const std::uint64_t taken = run::cuda::shared_bytes_of(bytes);
  EAGLE_RETURN_IF_ERROR(charge(*unit, taken, "a plane", 1));
  const auto made = std::make_shared<GpuMemory>(shared_from_this(), unit, taken);
  EAGLE_ASSIGN_OR_RETURN(made->memory_, run::cuda::DeviceMemory::create_shared(unit->device, bytes));
  // What another process left there is nobody's to see, behind the plane's bytes as little as in them.
  EAGLE_RETURN_IF_ERROR(made->memory_.clear());
  return std::shared_ptr<const GpuMemory>(made);
}

StatusOr<std::shared_ptr<const void>> Gpus::hold(std::shared_ptr<const run::cuda::Devices::Unit> unit,
                                                 std::uint64_t bytes, std::string_view what) {
  EAGLE_RETURN_IF_ERROR(charge(*unit, bytes, what, 0));
  return std::shared_ptr<const void>(unit.get(), [gpus = shared_from_this(), unit, bytes](const void*) {
    gpus->give_back(*unit, bytes, 0);
  });
}

StatusOr<run::cuda::Devices::Chosen> chosen_devices(const std::string& text) {
  if (text == "auto") return run::cuda::Devices::Chosen();
  std::vector<std::string> uuids;
  if (text == "none") return run::cuda::Devices::Chosen(std::move(uuids));
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    uuids.push_back(text.substr(at, end - at));
    if (!uuids.back().starts_with("GPU-")) {
      return Status(Reason::bad_value,
                    "devices: expected \"auto\", \"none\", or UUIDs as nvidia-smi -L prints "
                    "them (GPU-...) with commas, found '" +
                        uuids.back() + "'");
    }
    at = end + 1;
  }
  return run::cuda::Devices::Chosen(std::move(uuids));
}

std::vector<Gpus::Use> Gpus::uses() const {
  std::vector<Use> all;
  for (const auto& unit : devices_.opened()) {
    const std::lock_guard lock(mutex_);
    const auto found = taken_.find(unit->info().uuid);
    const Taken taken = found == taken_.end() ? Taken() : found->second;
    all.push_back({unit->info(), taken.planes, taken.bytes, budget_of(unit->info()), unit->device->lost()});
  }
  return all;
}

}  // namespace eagle::server
