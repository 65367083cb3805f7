// Gpus: memory on the GPUs of this host, made for sessions and bounded by GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/run/cuda/device_sharing.h"
#include "engine/run/cuda/devices.h"

namespace eagle::server {

class Gpus;

// Memory on a GPU, charged for as long as it is.
class GpuMemory {
public:
  GpuMemory(std::shared_ptr<Gpus> gpus, std::shared_ptr<const run::cuda::Devices::Unit> unit,
            std::uint64_t charged)
      : gpus_(std::move(gpus)), unit_(std::move(unit)), charged_(charged) {}
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  [[nodiscard]] const run::cuda::DeviceMemory& memory() const { return memory_; }
  [[nodiscard]] const std::shared_ptr<const run::cuda::Devices::Unit>& unit() const { return unit_; }

private:
  friend Gpus;
  const std::shared_ptr<Gpus> gpus_;
  const std::shared_ptr<const run::cuda::Devices::Unit> unit_;
  const std::uint64_t charged_;
  run::cuda::DeviceMemory memory_;
};

// Thread-safe. Memory that it made keeps it.
class Gpus : public std::enable_shared_from_this<Gpus> {
public:
  // Called from whichever thread it happens on, which may hold locks. Both may be empty.
  struct Events {
    std::function<void(const run::cuda::DeviceInfo& gpu)> used;                     // for the first time
    std::function<void(const run::cuda::DeviceInfo& gpu, const Status& why)> lost;  // Device::OnLost
  };
  // `compiler` outlives it. `budget_bytes`: that planes may take of each; 0: three quarters of what it has.
  Gpus(codegen::Compiler& compiler, run::cuda::Devices::Chosen chosen, std::uint64_t budget_bytes,
       Events events = {});
  // Memory that lives on tells nobody of anything any more.
  void forget_events();

  // Zeros, for other processes to open. What Devices::find says of the name; PLANE_BUDGET with what was
  // asked, is used and is there; OUT_OF_MEMORY where others have taken the GPU's memory.
  StatusOr<std::shared_ptr<const GpuMemory>> make(std::string_view device, std::uint64_t bytes);

  // As Devices::find.
  StatusOr<std::shared_ptr<const run::cuda::Devices::Unit>> find(std::string_view device);
  // Counts so many bytes that are no plane, `what` for people ("scratch planes"), for as long as the result
  // is. PLANE_BUDGET.
  StatusOr<std::shared_ptr<const void>> hold(std::shared_ptr<const run::cuda::Devices::Unit> unit,
                                             std::uint64_t bytes, std::string_view what);

  struct Use {
    run::cuda::DeviceInfo info;
    std::uint64_t planes = 0;
    std::uint64_t plane_bytes = 0;
    std::uint64_t budget_bytes = 0;
    bool lost = false;
  };
  // Of those that are in use.
  [[nodiscard]] std::vector<Use> uses() const;

private:
  friend GpuMemory;
  struct Taken {
    std::uint64_t planes = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] std::uint64_t budget_of(const run::cuda::DeviceInfo& info) const;
  Status charge(const run::cuda::Devices::Unit& unit, std::uint64_t bytes, std::string_view what,
                std::uint64_t planes);
  void give_back(const run::cuda::Devices::Unit& unit, std::uint64_t bytes, std::uint64_t planes);

  void tell_lost(const run::cuda::DeviceInfo& gpu, const Status& why);

  run::cuda::Devices devices_;
  const std::uint64_t budget_bytes_;
  mutable std::mutex mutex_;
  std::map<std::string, Taken> taken_;  // by UUID
  std::set<std::string> used_;          // UUIDs
  std::mutex events_mutex_;
  Events events_;
};

// "auto", "none", or UUIDs with commas. BAD_VALUE.
StatusOr<run::cuda::Devices::Chosen> chosen_devices(const std::string& text);

}  // namespace eagle::server
