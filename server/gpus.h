// Gpus: memory on the GPUs of this host, made for sessions and bounded by GPU, or made by their clients and
// opened here.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "engine/run/cuda/device_sharing.h"
#include "engine/run/cuda/devices.h"
#include "engine/run/cuda/opening.h"

namespace eagle::server {

class Gpus;
class PlaneBytes;

// Memory on a GPU, charged for as long as it is, where this process made it.
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

  // A client made it. The other end of its descriptor is closed when nobody here has the memory any more,
  // this process being gone included: until then the client keeps it.
  [[nodiscard]] bool imported() const { return until_closed_.valid(); }
  // For the client, of memory that it made. SYSTEM.
  [[nodiscard]] StatusOr<UniqueFd> descriptor() const;
  // The bytes of planes over memory that was imported: one object for all who import the same.
  std::shared_ptr<PlaneBytes> shared_bytes(const std::function<std::shared_ptr<PlaneBytes>()>& make) const;

private:
  friend Gpus;
  const std::shared_ptr<Gpus> gpus_;
  const std::shared_ptr<const run::cuda::Devices::Unit> unit_;
  const std::uint64_t charged_;
  run::cuda::DeviceMemory memory_;
  UniqueFd closed_;        // by the destructor, after the memory
  UniqueFd until_closed_;  // the other end
  mutable std::mutex bytes_mutex_;
  mutable std::weak_ptr<PlaneBytes> bytes_;
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

  // Memory that a client made: the same object for the same bytes, while somebody has it. Its allocation is
  // opened once, and closed with the last of its bytes. MIXED_DEVICES for a GPU that is not used here, by the
  // names of both; BAD_VALUE for bytes that share some, and not all, with what is imported already; DEADLINE
  // where the driver takes longer than `patience`, QUOTA where it has many such calls to finish already; what
  // DeviceMemory::open says. Blocks for as long.
  StatusOr<std::shared_ptr<const GpuMemory>> import(const run::cuda::DeviceHandle& handle,
                                                    std::chrono::milliseconds patience);

  // Those that were used, without asking a driver.
  [[nodiscard]] std::vector<std::shared_ptr<const run::cuda::Devices::Unit>> used() const;
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

  // An allocation of a client, which is being opened or is open.
  struct Imports {
    std::weak_ptr<run::cuda::Opening> allocation;
    struct Part {
      std::uint64_t end = 0;
      std::weak_ptr<const GpuMemory> memory;
    };
    std::map<std::uint64_t, Part> parts;  // by first byte
  };
  StatusOr<std::shared_ptr<run::cuda::Opening>> begin_opening(const run::cuda::Devices::Unit& unit,
                                                              const run::cuda::DeviceHandle& handle);
  StatusOr<std::shared_ptr<run::cuda::Opening>> opened(
      const std::shared_ptr<const run::cuda::Devices::Unit>& unit, const run::cuda::DeviceHandle& handle,
      std::chrono::milliseconds patience);

  run::cuda::Devices devices_;
  const std::uint64_t budget_bytes_;
  mutable std::mutex mutex_;
  std::map<std::string, Taken> taken_;                                           // by UUID
  std::map<std::string, std::shared_ptr<const run::cuda::Devices::Unit>> used_;  // by UUID
  std::mutex imports_mutex_;
  std::map<std::string, Imports> imports_;  // by UUID and the driver's 64 bytes
  // Calls of the driver that open memory and have not returned.
  std::atomic<int> opening_ = 0;
  std::mutex events_mutex_;
  Events events_;
};

// "auto", "none", or UUIDs with commas. BAD_VALUE.
StatusOr<run::cuda::Devices::Chosen> chosen_devices(const std::string& text);

}  // namespace eagle::server
