// Opening: memory of another process, opened by a thread of its own. A driver that takes long, or never comes
// back, then holds up whoever waits for that memory, as long as he likes, and nobody else.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "engine/base/status.h"
#include "engine/run/cuda/device_sharing.h"

namespace eagle::run::cuda {

// Thread-safe. What comes after the last owner has gone is closed again.
class Opening {
public:
  // Calls DeviceMemory::open. `ended`, which may be empty, is called once that has come back, from its
  // thread. SYSTEM where there is no thread.
  static StatusOr<std::shared_ptr<Opening>> begin(std::shared_ptr<const Device> device, DeviceHandle handle,
                                                  DeviceMemory::Users users,
                                                  std::function<void()> ended = {});

  // Null status: it is open. DEADLINE where it is not yet, which names the driver's call and `cure`; it may
  // be waited for again. Else what DeviceMemory::open says.
  Status wait(std::chrono::milliseconds patience, std::string_view cure);
  // Once `wait` has said that it is open; for as long as this is.
  [[nodiscard]] const DeviceMemory& memory() const { return **memory_; }

private:
  void set(StatusOr<DeviceMemory> memory);
  const char* call_ = "";  // of the driver
  std::mutex mutex_;
  std::condition_variable opened_;
  std::optional<StatusOr<DeviceMemory>> memory_;
};

}  // namespace eagle::run::cuda
