#include "engine/run/cuda/foreign_memory.h"

#include <array>
#include <cstdio>
#include <string>
#include <utility>

namespace eagle::run::cuda {
namespace {

std::string at(api::DevicePointer address) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%#llx", address);
  return text.data();
}

}  // namespace

// The driver knows every address of every context, whichever is current.
StatusOr<ForeignMemory> foreign_memory(api::DevicePointer address, std::uint64_t bytes) {
  ForeignMemory found;
  EAGLE_ASSIGN_OR_RETURN(found.driver, Driver::open());
  const api::Functions& call = found.driver->call();
  const auto none = [&](const std::string& why) {
    return Status(Reason::bad_value, "address " + at(address) + " is no memory of a GPU in this process (" +
                                         why + "); give an array that CUDA has here");
  };
  int kind = 0, ordinal = 0;
  for (const auto& [value, attribute] :
       {std::pair(&kind, api::pointer_memory_type), std::pair(&ordinal, api::pointer_device_ordinal)}) {
    if (const api::Result result = call.cuPointerGetAttribute(value, attribute, address);
        result != api::success)
      return none(found.driver->status(result, "cuPointerGetAttribute").message());
  }
  if (kind != api::memory_of_device) return none("it is the host's, which CUDA has mapped");
  EAGLE_ASSIGN_OR_RETURN(const std::vector<DeviceInfo> all, found.driver->devices());
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= all.size())
    return none("device " + std::to_string(ordinal) + " of " + std::to_string(all.size()));
  found.gpu = all[static_cast<std::size_t>(ordinal)];
  EAGLE_ASSIGN_OR_RETURN(const auto device, Device::open(found.driver, ordinal));
  std::size_t allocation = 0;
  EAGLE_RETURN_IF_ERROR(device->run("cuMemGetAddressRange", [&](const api::Functions& functions) {
    return functions.cuMemGetAddressRange(&found.base, &allocation, address);
  }));
  found.allocation = allocation;
  const std::uint64_t offset = address - found.base;
  if (offset > found.allocation || bytes > found.allocation - offset) {
    return Status(Reason::bad_value, std::to_string(bytes) + " bytes from " + at(address) +
                                         " on reach out of their allocation, which has " +
                                         std::to_string(found.allocation) + " bytes from " + at(found.base) +
                                         " on; give an array that lies in one allocation");
  }
  found.address = address;
  found.bytes = bytes;
  return found;
}

StatusOr<DeviceHandle> handle_of(const ForeignMemory& memory) {
  EAGLE_RETURN_IF_ERROR(memory.driver->ipc());
  EAGLE_ASSIGN_OR_RETURN(const auto device, Device::open(memory.driver, memory.gpu.ordinal));
  api::IpcHandle bytes;
  const Status said = device->run("cuIpcGetMemHandle", [&](const api::Functions& call) {
    return call.cuIpcGetMemHandle(&bytes, memory.base);
  });
  if (!said.ok()) {
    if (device->lost()) return said;
    return Status(
        Reason::bad_value,
        "memory on " + text_of(memory.gpu) + " that its driver hands to no other process (" + said.message() +
            "): it is of a stream-ordered pool (cudaMallocAsync), mapped by hand, or managed; make "
            "it with cudaMalloc (torch without expandable_segments and without "
            "backend:cudaMallocAsync, CuPy with its default pool), or take an array of the session, "
            "zeros(..., device=\"cuda:" +
            std::to_string(memory.gpu.ordinal) + "\")");
  }
  DeviceHandle handle;
  handle.uuid = memory.gpu.uuid;
  handle.ipc.assign(bytes.bytes, sizeof bytes.bytes);
  handle.allocation = memory.allocation;
  handle.offset = memory.address - memory.base;
  handle.bytes = memory.bytes;
  return handle;
}

StatusOr<DeviceMemory> borrowed(std::shared_ptr<const Device> device, const ForeignMemory& memory,
                                std::shared_ptr<const void> owner) {
  api::Context context = nullptr;
  const api::Result result =
      memory.driver->call().cuPointerGetAttribute(&context, api::pointer_context, memory.address);
  // Of pools, and of what is mapped by hand, no context is known: every one of the GPU has it.
  if (result == api::success && context != nullptr && context != device->context()) {
    return Status(Reason::bad_value,
                  "memory on " + text_of(memory.gpu) +
                      " of a context that its program made itself; make it in the primary context, which the "
                      "CUDA runtime, torch, CuPy and JAX use");
  }
  return DeviceMemory::borrow(std::move(device), memory.address, memory.bytes, std::move(owner));
}

}  // namespace eagle::run::cuda
