// Device: one GPU in use by this process, and what is made on it. Everything here is freed by its owner,
// which keeps the device.
//
// Thread-safe. Each call makes the device's context current for its own length only, so that a host process
// with contexts of its own (torch, cupy) finds them as they were.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/run/cuda/capture_turns.h"
#include "engine/run/cuda/driver.h"

namespace eagle::run::cuda {

class Device {
public:
  // Told once, from whichever thread sees it first, of a fault that the context never forgets (an illegal
  // address, an error of the memory): every call of this process for that GPU fails from then on. Must not
  // block, nor call the device.
  using OnLost = std::function<void(const DeviceInfo& info, const Status& why)>;
  // The primary context of the device, which torch and the CUDA runtime use, too. BAD_VALUE for an ordinal
  // that is not there.
  static StatusOr<std::shared_ptr<const Device>> open(std::shared_ptr<const Driver> driver, int ordinal,
                                                      OnLost on_lost = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const DeviceInfo& info() const { return info_; }
  [[nodiscard]] const Driver& driver() const { return *driver_; }

  [[nodiscard]] api::Context context() const { return context_; }
  [[nodiscard]] CaptureTurns& turns() const { return *turns_; }

  // The context, current in this thread while it lives.
  class Current {
  public:
    explicit Current(const Device& device);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    [[nodiscard]] const Status& status() const { return status_; }

  private:
    const Device& device_;
    Status status_;
  };

  // `call` of the driver's functions with the context current; what it says, under the name `what`.
  template <typename Call>
  [[nodiscard]] Status run(const char* what, Call call) const {
    const Current current(*this);
    EAGLE_RETURN_IF_ERROR(current.status());
    const api::Result result = call(driver_->call());
    return result == api::success ? Status() : failed(result, what);
  }
  // The same, of writes by the host to the device's memory; returns once they are done there. By themselves
  // such calls may return before (memory of the host that is not pinned may still be on its way, and a fill
  // is not waited for at all), and no stream of ours, which none of them blocks, would come behind them. They
  // are work of the default stream: they come behind what other packages have enqueued there.
  template <typename Call>
  [[nodiscard]] Status write(const char* what, Call call) const {
    return run(what, [&](const api::Functions& functions) -> api::Result {
      const api::Result result = call(functions);
      return result == api::success ? functions.cuStreamSynchronize(nullptr) : result;
    });
  }
  // `call` frees something, in whichever thread drops it last; whatever it says, there is nobody to tell. By
  // the rules of a driver a free may spoil what a package of this process is capturing, and be refused
  // itself, unless its thread answers for it: that nothing which is captured uses what is freed, which is as
  // true as of any other time.
  template <typename Call>
  void free(const char* what, Call call) const {
    (void)run(what, [&](const api::Functions& functions) -> api::Result {
      int mode = api::capture_relaxed;
      const api::Result exchanged = functions.cuThreadExchangeStreamCaptureMode(&mode);
      const api::Result result = call(functions);
      if (exchanged == api::success) functions.cuThreadExchangeStreamCaptureMode(&mode);
      return result;
    });
  }
  // Asks the driver for something small, whether the GPU is still there; waits for no work. A fault is told
  // as every other one, and so is what only a GPU that has vanished says.
  Status probe() const;
  [[nodiscard]] bool lost() const { return lost_.load(std::memory_order_acquire); }

private:
  Device() = default;
  Status failed(api::Result result, const char* what, bool vanished = false) const;
  std::shared_ptr<const Driver> driver_;
  DeviceInfo info_;
  api::Context context_ = nullptr;
  std::shared_ptr<CaptureTurns> turns_;
  OnLost on_lost_;
  mutable std::atomic<bool> lost_ = false;
};

struct DeviceHandle;  // device_sharing.h

// Who pays for memory of one device: counts so many bytes, `what` for people ("scratch planes"), for as long
// as the result is, or refuses. Empty: nobody does. Thread-safe.
using Account =
    std::function<StatusOr<std::shared_ptr<const void>>(std::uint64_t bytes, std::string_view what)>;
// Memory of a device begins at a multiple of this, and is paid for in multiples of it.
inline constexpr std::uint64_t memory_alignment = 256;
constexpr std::uint64_t paid_bytes(std::uint64_t bytes) {
  return bytes / memory_alignment * memory_alignment + (bytes % memory_alignment != 0 ? memory_alignment : 0);
}

// Bytes on a device, aligned to 256.
class DeviceMemory {
public:
  // How other processes may open it; `none` also of what was opened here.
  enum class Sharing : std::uint8_t { none, descriptor, ipc };

  DeviceMemory() = default;
  // Not cleared. OUT_OF_MEMORY says how much was asked for and how much there was.
  static StatusOr<DeviceMemory> create(std::shared_ptr<const Device> device, std::uint64_t bytes);
  // The same, paid for by `account` until it is freed. What that says.
  static StatusOr<DeviceMemory> create(std::shared_ptr<const Device> device, std::uint64_t bytes,
                                       const Account& account, std::string_view what);
  // Likewise, for other processes to open by `handle`: `none` where the driver can do neither. It takes whole
  // pieces of the device's memory, which it has for itself: who opens it sees all of them.
  static StatusOr<DeviceMemory> create_shared(std::shared_ptr<const Device> device, std::uint64_t bytes);
  // Who works on memory that was opened here: the engine, which knows when it has done so, or also packages
  // of the program, on streams of theirs.
  enum class Users : std::uint8_t { engine, packages };
  // What another process made; with packages, it is closed only once the GPU has done what it was given.
  // MIXED_DEVICES for a handle of another GPU, by the names of both; OUT_OF_MEMORY; SYSTEM.
  static StatusOr<DeviceMemory> open(std::shared_ptr<const Device> device, const DeviceHandle& handle,
                                     Users users = Users::engine);
  // What somebody else made, frees, and does not free before `owner` goes.
  static DeviceMemory borrow(std::shared_ptr<const Device> device, api::DevicePointer address,
                             std::uint64_t bytes, std::shared_ptr<const void> owner);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  [[nodiscard]] api::DevicePointer address() const { return address_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t taken_bytes() const { return taken_; }  // of the device, at least `bytes`
  [[nodiscard]] Sharing sharing() const { return sharing_; }
  [[nodiscard]] const std::shared_ptr<const Device>& device() const { return device_; }
  // For another process on the same host. BAD_VALUE where it was not made by `create_shared`; SYSTEM.
  [[nodiscard]] StatusOr<DeviceHandle> handle() const;
  // All of it from `offset` on, at most. They wait until they are done; work of streams is not waited for,
  // but that of the default one.
  Status write(std::span<const std::byte> from, std::uint64_t offset = 0) const;
  Status read(std::span<std::byte> to, std::uint64_t offset = 0) const;
  Status fill(unsigned char value) const;
  // Zeros in all that it takes: whoever opens it sees that.
  Status clear() const;

private:
  enum class Origin : std::uint8_t { allocated, mapped, opened, borrowed };
  void release();
  Status map(std::uint64_t allocation, std::uint64_t bytes);
  std::shared_ptr<const Device> device_;
  api::DevicePointer address_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t taken_ = 0;
  Origin origin_ = Origin::allocated;
  Sharing sharing_ = Sharing::none;
  api::DevicePointer base_ = 0;        // of what was mapped or opened
  api::DevicePointer awaited_ = 0;     // to be freed before that is closed
  std::uint64_t allocation_ = 0;       // the driver's number of what is mapped
  std::shared_ptr<const void> owner_;  // of what was borrowed; of what was made, who pays
};

// A module of PTX, compiled by the driver, and its kernel.
class DeviceModule {
public:
  DeviceModule() = default;
  // COMPILE_FAILED with what the driver's compiler says.
  static StatusOr<DeviceModule> load(std::shared_ptr<const Device> device, const std::string& ptx,
                                     const char* kernel);
  DeviceModule(DeviceModule&& other) noexcept;
  DeviceModule& operator=(DeviceModule&& other) noexcept;
  ~DeviceModule();
  [[nodiscard]] api::Function function() const { return function_; }

private:
  void release();
  std::shared_ptr<const Device> device_;
  api::Module module_ = nullptr;
  api::Function function_ = nullptr;
};

// Work in order.
class DeviceStream {
public:
  DeviceStream() = default;
  static StatusOr<DeviceStream> create(std::shared_ptr<const Device> device);
  DeviceStream(DeviceStream&& other) noexcept;
  DeviceStream& operator=(DeviceStream&& other) noexcept;
  ~DeviceStream();

  // `parameter` is copied by the call. Returns before the work is done.
  Status launch(const DeviceModule& module, unsigned blocks, unsigned threads,
                std::span<const std::uint64_t> parameter) const;
  [[nodiscard]] api::Stream handle() const { return stream_; }
  // Waits for all of it. What went wrong in any of it is said here: an address that is not there, and the
  // like, after which the context is lost.
  [[nodiscard]] Status wait() const;
  // Whether all of it is done, without waiting; errors as of `wait`.
  [[nodiscard]] StatusOr<bool> done() const;

private:
  void release();
  std::shared_ptr<const Device> device_;
  api::Stream stream_ = nullptr;
};

// How far a stream has come, for another one to wait for. May be recorded again once it has been waited on.
class DeviceEvent {
public:
  DeviceEvent() = default;
  static StatusOr<DeviceEvent> create(std::shared_ptr<const Device> device);
  DeviceEvent(DeviceEvent&& other) noexcept;
  DeviceEvent& operator=(DeviceEvent&& other) noexcept;
  ~DeviceEvent();

  // What `later` is given from now on begins once all is done that `earlier` has been given. The host waits
  // for nothing. SYSTEM for streams that are none, or of another GPU.
  [[nodiscard]] Status order(api::Stream earlier, api::Stream later) const;

private:
  void release();
  std::shared_ptr<const Device> device_;
  api::Event event_ = nullptr;
};

}  // namespace eagle::run::cuda
