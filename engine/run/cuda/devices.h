// Devices: the GPUs that a host computes on, each opened when it is first asked for. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/codegen/compiler.h"
#include "engine/run/cuda/device.h"
#include "engine/run/cuda/device_modules.h"

namespace eagle::run::cuda {

class Devices {
public:
  // Of the driver's GPUs: those of these UUIDs; none of them, for an empty list; all, without one.
  using Chosen = std::optional<std::vector<std::string>>;

  // A GPU in use.
  struct Unit {
    std::shared_ptr<const Device> device;
    std::unique_ptr<DeviceModules> modules;
    [[nodiscard]] const DeviceInfo& info() const { return device->info(); }
    [[nodiscard]] std::string name() const { return "cuda:" + std::to_string(info().ordinal); }
  };

  // `compiler` outlives it. `on_lost`: as of each Device.
  explicit Devices(codegen::Compiler& compiler, Chosen chosen = {}, Device::OnLost on_lost = {})
      : compiler_(compiler), chosen_(std::move(chosen)), on_lost_(std::move(on_lost)) {}

  // "cuda:1", "cuda" (the first one that may be used), or a UUID as nvidia-smi prints it. BAD_VALUE for what
  // is none of these, or not here, with what there is; SYSTEM where there is no driver.
  StatusOr<std::shared_ptr<const Unit>> find(std::string_view name);
  // Those that are in use already.
  [[nodiscard]] std::vector<std::shared_ptr<const Unit>> opened() const;

private:
  StatusOr<std::shared_ptr<const Driver>> driver();  // with the lock held
  StatusOr<std::vector<DeviceInfo>> may_use();       // likewise
  StatusOr<std::shared_ptr<const Unit>> open(const DeviceInfo& info);

  codegen::Compiler& compiler_;
  const Chosen chosen_;
  const Device::OnLost on_lost_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Driver> driver_;
  std::map<int, std::shared_ptr<const Unit>> opened_;  // by ordinal
};

// The GPU of this UUID, in this process. MIXED_DEVICES names it and those that are here; SYSTEM where there
// is no driver.
StatusOr<std::shared_ptr<const Device>> open_by_uuid(std::string_view uuid);

// Waits for what a stream of this process has on the GPU of this UUID (0: the default one), or all of it has.
// As open_by_uuid; a fault of what ran there.
Status wait_for_stream(std::string_view uuid, std::optional<std::uint64_t> stream);

// Whether a device's name means the CPU: empty, or "cpu".
bool is_cpu(std::string_view device);

}  // namespace eagle::run::cuda
