#include "engine/run/cuda/device_sharing.h"

#include <cstring>
#include <utility>

namespace eagle::run::cuda {
namespace {

api::AllocationProperties properties_of(const Device& device) {
  api::AllocationProperties properties;
  properties.handle_types = api::handle_posix_descriptor;
  properties.location.id = device.info().ordinal;
  return properties;
}

// A multiple; saturates, so that what is too much stays too much.
std::uint64_t whole(std::uint64_t bytes, std::uint64_t piece) {
  const std::uint64_t pieces = bytes / piece + (bytes % piece != 0 || bytes == 0 ? 1 : 0);
  std::uint64_t rounded = 0;
  return __builtin_mul_overflow(pieces, piece, &rounded) ? UINT64_MAX / piece * piece : rounded;
}

}  // namespace

std::uint64_t shared_bytes_of(std::uint64_t bytes) { return whole(bytes, share_granularity); }

std::string_view transport_of(DeviceMemory::Sharing sharing) {
  switch (sharing) {
    case DeviceMemory::Sharing::descriptor:
      return "cuda_vmm_fd";
    case DeviceMemory::Sharing::ipc:
      return "cuda_ipc";
    default:
      return "copy";
  }
}

StatusOr<DeviceMemory> DeviceMemory::create_shared(std::shared_ptr<const Device> device,
                                                   std::uint64_t bytes) {
  if (device->info().descriptors) {
    const api::AllocationProperties properties = properties_of(*device);
    std::size_t granularity = 0;
    EAGLE_RETURN_IF_ERROR(device->run("cuMemGetAllocationGranularity", [&](const api::Functions& call) {
      return call.cuMemGetAllocationGranularity(&granularity, &properties, api::granularity_minimum);
    }));
    const std::uint64_t taken = whole(bytes, granularity);
    DeviceMemory memory;
    memory.device_ = device;
    std::uint64_t allocation = 0;
    EAGLE_RETURN_IF_ERROR(
        out_of_memory_in(*device, bytes, device->run("cuMemCreate", [&](const api::Functions& call) {
          return call.cuMemCreate(&allocation, taken, &properties, 0);
        })));
    EAGLE_RETURN_IF_ERROR(memory.map(allocation, taken));
    memory.address_ = memory.base_;
    memory.bytes_ = bytes;
    memory.sharing_ = Sharing::descriptor;
    return memory;
  }
  const bool ipc = device->driver().ipc().ok();
  EAGLE_ASSIGN_OR_RETURN(DeviceMemory memory, create(device, ipc ? whole(bytes, share_granularity) : bytes));
  memory.bytes_ = bytes;
  memory.sharing_ = ipc ? Sharing::ipc : Sharing::none;
  return memory;
}

// Owns the allocation from here on, whatever becomes of the map.
Status DeviceMemory::map(std::uint64_t allocation, std::uint64_t bytes) {
  origin_ = Origin::mapped;
  allocation_ = allocation;
  taken_ = bytes;
  api::AccessDescription access;
  access.location.id = device_->info().ordinal;
  const auto mapped = device_->run("cuMemAddressReserve", [&](const api::Functions& call) {
    return call.cuMemAddressReserve(&base_, bytes, 0, 0, 0);
  });
  EAGLE_RETURN_IF_ERROR(mapped);
  EAGLE_RETURN_IF_ERROR(device_->run("cuMemMap", [&](const api::Functions& call) {
    const api::Result result = call.cuMemMap(base_, bytes, 0, allocation, 0);
    // Nothing is mapped there then: the addresses alone go back.
    if (result != api::success) call.cuMemAddressFree(std::exchange(base_, 0), bytes);
    return result;
  }));
  return device_->run("cuMemSetAccess", [&](const api::Functions& call) {
    return call.cuMemSetAccess(base_, bytes, &access, 1);
  });
}

StatusOr<DeviceHandle> DeviceMemory::handle() const {
  DeviceHandle handle;
  if (sharing_ == Sharing::none) {
    return Status(Reason::bad_value,
                  "memory on " + (device_ ? text_of(device_->info()) : std::string("no device")) +
                      " that no other process can open: " +
                      (device_ && !device_->driver().ipc().ok() ? device_->driver().ipc().message()
                                                                : "it was not made to be shared"));
  }
  handle.uuid = device_->info().uuid;
  handle.allocation = taken_;
  handle.bytes = bytes_;
  if (sharing_ == Sharing::descriptor) {
    int descriptor = -1;
    EAGLE_RETURN_IF_ERROR(device_->run("cuMemExportToShareableHandle", [&](const api::Functions& call) {
      return call.cuMemExportToShareableHandle(&descriptor, allocation_, api::handle_posix_descriptor, 0);
    }));
    handle.descriptor = UniqueFd(descriptor);
    return handle;
  }
  api::IpcHandle bytes;
  EAGLE_RETURN_IF_ERROR(device_->run("cuIpcGetMemHandle", [&](const api::Functions& call) {
    return call.cuIpcGetMemHandle(&bytes, address_);
  }));
  handle.ipc.assign(bytes.bytes, sizeof bytes.bytes);
  return handle;
}

StatusOr<DeviceMemory> DeviceMemory::open(std::shared_ptr<const Device> device, const DeviceHandle& handle,
                                          Users users) {
  if (handle.uuid != device->info().uuid) {
    return Status(Reason::mixed_devices, "memory of " + handle.uuid + " cannot be opened on " +
                                             text_of(device->info()) + "; open it on the GPU that has it");
  }
  std::uint64_t last = 0;
  if (__builtin_add_overflow(handle.offset, handle.bytes, &last) || last > handle.allocation) {
    return Status(Reason::bad_value, "a handle of " + std::to_string(handle.bytes) + " bytes from byte " +
                                         std::to_string(handle.offset) + " on, of an allocation of " +
                                         std::to_string(handle.allocation) + " bytes");
  }
  DeviceMemory memory;
  memory.device_ = device;
  if (handle.descriptor.valid()) {
    std::uint64_t allocation = 0;
    EAGLE_RETURN_IF_ERROR(device->driver().descriptors());
    EAGLE_RETURN_IF_ERROR(device->run("cuMemImportFromShareableHandle", [&](const api::Functions& call) {
      void* const number = reinterpret_cast<void*>(static_cast<std::intptr_t>(handle.descriptor.get()));
      return call.cuMemImportFromShareableHandle(&allocation, number, api::handle_posix_descriptor);
    }));
    EAGLE_RETURN_IF_ERROR(memory.map(allocation, handle.allocation));
  } else {
    EAGLE_RETURN_IF_ERROR(device->driver().ipc());
    api::IpcHandle bytes;
    if (handle.ipc.size() != sizeof bytes.bytes) {
      return Status(Reason::bad_value, "expected a handle of " + std::to_string(sizeof bytes.bytes) +
                                           " bytes, found " + std::to_string(handle.ipc.size()));
    }
    std::memcpy(bytes.bytes, handle.ipc.data(), sizeof bytes.bytes);
    EAGLE_RETURN_IF_ERROR(device->run("cuIpcOpenMemHandle", [&](const api::Functions& call) {
      return call.cuIpcOpenMemHandle(&memory.base_, bytes, api::ipc_lazy_peer_access);
    }));
    memory.origin_ = Origin::opened;
    memory.taken_ = handle.allocation;
  }
  memory.address_ = memory.base_ + handle.offset;
  memory.bytes_ = handle.bytes;
  if (users == Users::packages) {
    EAGLE_RETURN_IF_ERROR(out_of_memory_in(*device, 1, device->run("cuMemAlloc", [&](const auto& call) {
      return call.cuMemAlloc(&memory.awaited_, 1);
    })));
  }
  return memory;
}

// Later, where something is captured on the GPU: a free would wait for the device, and spoil that.
//
// cuMemFree waits for what the GPU was given before, whoever gave it; cuMemUnmap does not always, and takes
// the memory away from kernels that are under way. So a byte is freed first. Waiting for the context instead
// (cuCtxSynchronize) would spoil whatever a package captures meanwhile, which a free of this kind does not.
void DeviceMemory::release() {
  if (address_ == 0 && base_ == 0 && allocation_ == 0) return;
  if (origin_ == Origin::borrowed) {
    address_ = 0;
    owner_.reset();
    return;
  }
  device_->turns().free([device = device_, origin = origin_, address = address_, base = base_, taken = taken_,
                         awaited = awaited_, allocation = allocation_] {
    device->free("cuMemFree", [&](const api::Functions& call) {
      if (origin == Origin::allocated) return call.cuMemFree(address);
      if (awaited != 0) call.cuMemFree(awaited);
      if (origin == Origin::opened) return call.cuIpcCloseMemHandle(base);
      if (base != 0) {
        call.cuMemUnmap(base, taken);
        call.cuMemAddressFree(base, taken);
      }
      return call.cuMemRelease(allocation);
    });
  });
  address_ = base_ = awaited_ = 0;
  allocation_ = 0;
  owner_.reset();
}

}  // namespace eagle::run::cuda
