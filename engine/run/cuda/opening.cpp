#include "engine/run/cuda/opening.h"

#include <string>
#include <utility>

#include "engine/base/detached.h"

namespace eagle::run::cuda {

StatusOr<std::shared_ptr<Opening>> Opening::begin(std::shared_ptr<const Device> device, DeviceHandle handle,
                                                  DeviceMemory::Users users, std::function<void()> ended) {
  const auto made = std::make_shared<Opening>();
  made->call_ = handle.descriptor.valid() ? "cuMemImportFromShareableHandle" : "cuIpcOpenMemHandle";
  // The thread's own: what it opens is closed by whoever has it last, which may be the thread.
  const auto given = std::make_shared<const DeviceHandle>(std::move(handle));
  EAGLE_RETURN_IF_ERROR(
      start_detached([made, device = std::move(device), given, users, ended = std::move(ended)] {
        auto memory = DeviceMemory::open(device, *given, users);
        if (ended) ended();
        made->set(std::move(memory));
      }));
  return made;
}

void Opening::set(StatusOr<DeviceMemory> memory) {
  const std::lock_guard lock(mutex_);
  memory_.emplace(std::move(memory));
  opened_.notify_all();
}

Status Opening::wait(std::chrono::milliseconds patience, std::string_view cure) {
  std::unique_lock lock(mutex_);
  if (!opened_.wait_for(lock, patience, [this] { return memory_.has_value(); })) {
    return {Reason::deadline, "the driver has not opened the memory within " +
                                  std::to_string(patience.count()) + " ms (" + call_ + "); " +
                                  std::string(cure)};
  }
  return memory_->status();
}

}  // namespace eagle::run::cuda
