#include "engine/run/cuda/device.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/run/cuda/device_sharing.h"

namespace eagle::run::cuda {

namespace {

// After these the context is of no more use, as the driver's manual says of each.
bool ends_context(api::Result result) {
  constexpr std::array fatal = {
      214,                      // an error of the memory that could not be corrected
      220,                      // the same of NVLink
      700,                      // an illegal address
      702,                      // a kernel took too long
      710,                      // an assertion in a kernel
      714, 715, 716, 717, 718,  // the stack, an instruction, alignment, an address space, the program counter
      719,                      // a kernel failed
      999,                      // unknown
  };
  return std::find(fatal.begin(), fatal.end(), result) != fatal.end();
}

// What nothing but a GPU that is gone says where its context was made once: fallen off the bus, taken away.
bool has_vanished(api::Result result) {
  return result == api::unavailable || result == api::no_device || result == api::invalid_device;
}

}  // namespace

// ---- Device

StatusOr<std::shared_ptr<const Device>> Device::open(std::shared_ptr<const Driver> driver, int ordinal,
                                                     OnLost on_lost) {
  EAGLE_ASSIGN_OR_RETURN(const std::vector<DeviceInfo> all, driver->devices());
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= all.size()) {
    return Status(Reason::bad_value,
                  "there is no device cuda:" + std::to_string(ordinal) + "; " +
                      (all.empty() ? "this process may use no GPU"
                                   : "expected cuda:0 to cuda:" + std::to_string(all.size() - 1)));
  }
  std::shared_ptr<Device> device(new Device());
  device->info_ = all[static_cast<std::size_t>(ordinal)];
  api::Device handle = 0;
  const api::Functions& call = driver->call();
  if (const api::Result result = call.cuDeviceGet(&handle, ordinal); result != api::success)
    return driver->status(result, "cuDeviceGet");
  if (const api::Result result = call.cuDevicePrimaryCtxRetain(&device->context_, handle);
      result != api::success)
    return driver->status(result, "cuDevicePrimaryCtxRetain of " + device->info_.name);
  device->driver_ = std::move(driver);
  device->turns_ = CaptureTurns::of(device->info_.uuid);
  device->on_lost_ = std::move(on_lost);
  return std::shared_ptr<const Device>(std::move(device));
}

Device::~Device() {
  if (driver_ == nullptr) return;
  api::Device handle = 0;
  if (driver_->call().cuDeviceGet(&handle, info_.ordinal) == api::success)
    driver_->call().cuDevicePrimaryCtxRelease(handle);
}

Status Device::probe() const {
  std::size_t free = 0, total = 0;
  api::Result result = driver_->call().cuCtxPushCurrent(context_);
  if (result == api::success) {
    result = driver_->call().cuMemGetInfo(&free, &total);
    api::Context popped = nullptr;
    driver_->call().cuCtxPopCurrent(&popped);
  }
  return result == api::success ? Status() : failed(result, "cuMemGetInfo", has_vanished(result));
}

Status Device::failed(api::Result result, const char* what, bool vanished) const {
  const Status said = driver_->status(result, what);
  if (!vanished && !ends_context(result) && !lost()) return said;
  const Status why(said.reason(), said.message() + "; " + text_of(info_) +
                                      " is lost to this process, with all that it has there");
  if (!lost_.exchange(true) && on_lost_) on_lost_(info_, why);
  return why;
}

Device::Current::Current(const Device& device) : device_(device) {
  const api::Result result = device.driver().call().cuCtxPushCurrent(device.context_);
  if (result != api::success) status_ = device.failed(result, "cuCtxPushCurrent");
}

Device::Current::~Current() {
  api::Context popped = nullptr;
  if (status_.ok()) device_.driver().call().cuCtxPopCurrent(&popped);
}

// ---- DeviceMemory

StatusOr<DeviceMemory> DeviceMemory::create(std::shared_ptr<const Device> device, std::uint64_t bytes) {
  DeviceMemory memory;
  memory.device_ = std::move(device);
  EAGLE_RETURN_IF_ERROR(
      out_of_memory_in(*memory.device_, bytes, memory.device_->run("cuMemAlloc", [&](const auto& call) {
        return call.cuMemAlloc(&memory.address_, bytes == 0 ? 1 : bytes);
      })));
  memory.bytes_ = memory.taken_ = bytes;
  return memory;
}

StatusOr<DeviceMemory> DeviceMemory::create(std::shared_ptr<const Device> device, std::uint64_t bytes,
                                            const Account& account, std::string_view what) {
  std::shared_ptr<const void> paid;
  if (account) {
    EAGLE_ASSIGN_OR_RETURN(paid, account(paid_bytes(bytes), what));
  }
  EAGLE_ASSIGN_OR_RETURN(DeviceMemory memory, create(std::move(device), bytes));
  memory.owner_ = std::move(paid);
  return memory;
}

Status out_of_memory_in(const Device& device, std::uint64_t bytes, const Status& status) {
  if (status.reason() != Reason::out_of_memory) return status;
  std::size_t free = 0, total = 0;
  (void)device.run("cuMemGetInfo",
                   [&](const api::Functions& call) { return call.cuMemGetInfo(&free, &total); });
  return {Reason::out_of_memory, device.info().name + " (cuda:" + std::to_string(device.info().ordinal) +
                                     ") has " + std::to_string(free) + " bytes free of " +
                                     std::to_string(total) + ", and " + std::to_string(bytes) +
                                     " were asked for"};
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  if (this == &other) return *this;
  release();
  device_ = std::move(other.device_);
  address_ = std::exchange(other.address_, 0);
  bytes_ = std::exchange(other.bytes_, 0);
  taken_ = std::exchange(other.taken_, 0);
  origin_ = other.origin_;
  sharing_ = other.sharing_;
  base_ = std::exchange(other.base_, 0);
  awaited_ = std::exchange(other.awaited_, 0);
  allocation_ = std::exchange(other.allocation_, 0);
  owner_ = std::move(other.owner_);
  return *this;
}
DeviceMemory::~DeviceMemory() { release(); }

DeviceMemory DeviceMemory::borrow(std::shared_ptr<const Device> device, api::DevicePointer address,
                                  std::uint64_t bytes, std::shared_ptr<const void> owner) {
  DeviceMemory memory;
  memory.device_ = std::move(device);
  memory.address_ = address;
  memory.bytes_ = bytes;
  memory.origin_ = Origin::borrowed;
  memory.owner_ = std::move(owner);
  return memory;
}

Status DeviceMemory::write(std::span<const std::byte> from, std::uint64_t offset) const {
  if (from.empty()) return {};
  return device_->write("cuMemcpyHtoD", [&](const api::Functions& call) {
    return call.cuMemcpyHtoD(address_ + offset, from.data(), from.size());
  });
}
Status DeviceMemory::read(std::span<std::byte> to, std::uint64_t offset) const {
  if (to.empty()) return {};
  return device_->run("cuMemcpyDtoH", [&](const api::Functions& call) {
    return call.cuMemcpyDtoH(to.data(), address_ + offset, to.size());
  });
}
Status DeviceMemory::fill(unsigned char value) const {
  if (bytes_ == 0) return {};
  return device_->write("cuMemsetD8",
                        [&](const api::Functions& call) { return call.cuMemsetD8(address_, value, bytes_); });
}

Status DeviceMemory::clear() const {
  return device_->write("cuMemsetD8", [&](const api::Functions& call) {
    return call.cuMemsetD8(address_, 0, std::max(taken_, bytes_));
  });
}

// ---- DeviceModule

StatusOr<DeviceModule> DeviceModule::load(std::shared_ptr<const Device> device, const std::string& ptx,
                                          const char* kernel) {
  DeviceModule module;
  module.device_ = std::move(device);
  std::string log(8192, '\0');
  std::array<int, 2> names = {api::jit_error_log_buffer, api::jit_error_log_buffer_bytes};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
  const Status loaded = module.device_->run("cuModuleLoadDataEx", [&](const api::Functions& call) {
    return call.cuModuleLoadDataEx(&module.module_, ptx.c_str(), 2, names.data(), values.data());
  });
  if (!loaded.ok()) {
    const std::string said = log.c_str();
    const Reason reason =
        loaded.reason() == Reason::out_of_memory ? Reason::out_of_memory : Reason::compile_failed;
    return Status(reason, loaded.message() + (said.empty() ? "" : "\n" + said));
  }
  EAGLE_RETURN_IF_ERROR(module.device_->run("cuModuleGetFunction", [&](const api::Functions& call) {
    return call.cuModuleGetFunction(&module.function_, module.module_, kernel);
  }));
  return module;
}

DeviceModule::DeviceModule(DeviceModule&& other) noexcept { *this = std::move(other); }
DeviceModule& DeviceModule::operator=(DeviceModule&& other) noexcept {
  if (this == &other) return *this;
  release();
  device_ = std::move(other.device_);
  module_ = std::exchange(other.module_, nullptr);
  function_ = std::exchange(other.function_, nullptr);
  return *this;
}
DeviceModule::~DeviceModule() { release(); }

void DeviceModule::release() {
  if (module_ == nullptr) return;
  device_->free("cuModuleUnload", [&](const api::Functions& call) { return call.cuModuleUnload(module_); });
  module_ = nullptr;
}

// ---- DeviceStream

StatusOr<DeviceStream> DeviceStream::create(std::shared_ptr<const Device> device) {
  DeviceStream stream;
  stream.device_ = std::move(device);
  EAGLE_RETURN_IF_ERROR(stream.device_->run("cuStreamCreate", [&](const api::Functions& call) {
    return call.cuStreamCreate(&stream.stream_, api::stream_non_blocking);
  }));
  return stream;
}

DeviceStream::DeviceStream(DeviceStream&& other) noexcept { *this = std::move(other); }
DeviceStream& DeviceStream::operator=(DeviceStream&& other) noexcept {
  if (this == &other) return *this;
  release();
  device_ = std::move(other.device_);
  stream_ = std::exchange(other.stream_, nullptr);
  return *this;
}
DeviceStream::~DeviceStream() { release(); }

void DeviceStream::release() {
  if (stream_ == nullptr) return;
  device_->free("cuStreamDestroy", [&](const api::Functions& call) { return call.cuStreamDestroy(stream_); });
  stream_ = nullptr;
}

Status DeviceStream::launch(const DeviceModule& module, unsigned blocks, unsigned threads,
                            std::span<const std::uint64_t> parameter) const {
  std::array<void*, 1> parameters = {const_cast<std::uint64_t*>(parameter.data())};
  return device_->run("cuLaunchKernel", [&](const api::Functions& call) {
    return call.cuLaunchKernel(module.function(), blocks, 1, 1, threads, 1, 1, 0, stream_, parameters.data(),
                               nullptr);
  });
}

Status DeviceStream::wait() const {
  return device_->run("cuStreamSynchronize",
                      [&](const api::Functions& call) { return call.cuStreamSynchronize(stream_); });
}

StatusOr<bool> DeviceStream::done() const {
  bool ready = true;
  EAGLE_RETURN_IF_ERROR(device_->run("cuStreamQuery", [&](const api::Functions& call) {
    const api::Result result = call.cuStreamQuery(stream_);
    ready = result != api::not_ready;
    return ready ? result : api::success;
  }));
  return ready;
}

// ---- DeviceEvent

StatusOr<DeviceEvent> DeviceEvent::create(std::shared_ptr<const Device> device) {
  DeviceEvent event;
  event.device_ = std::move(device);
  EAGLE_RETURN_IF_ERROR(event.device_->run("cuEventCreate", [&](const api::Functions& call) {
    return call.cuEventCreate(&event.event_, api::event_without_time);
  }));
  return event;
}

DeviceEvent::DeviceEvent(DeviceEvent&& other) noexcept { *this = std::move(other); }
DeviceEvent& DeviceEvent::operator=(DeviceEvent&& other) noexcept {
  if (this == &other) return *this;
  release();
  device_ = std::move(other.device_);
  event_ = std::exchange(other.event_, nullptr);
  return *this;
}
DeviceEvent::~DeviceEvent() { release(); }

void DeviceEvent::release() {
  if (event_ == nullptr) return;
  device_->free("cuEventDestroy", [&](const api::Functions& call) { return call.cuEventDestroy(event_); });
  event_ = nullptr;
}

Status DeviceEvent::order(api::Stream earlier, api::Stream later) const {
  EAGLE_RETURN_IF_ERROR(device_->run(
      "cuEventRecord", [&](const api::Functions& call) { return call.cuEventRecord(event_, earlier); }));
  return device_->run("cuStreamWaitEvent",
                      [&](const api::Functions& call) { return call.cuStreamWaitEvent(later, event_, 0); });
}

}  // namespace eagle::run::cuda
