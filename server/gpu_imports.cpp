// Memory on GPUs that clients made.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "server/gpus.h"

namespace eagle::server {
namespace {

// As many calls of the driver may be under way before nobody gets another thread for one.
constexpr int most_openings = 8;

std::string key_of(const run::cuda::DeviceHandle& handle) { return handle.uuid + handle.ipc; }

// What a client says of its memory is looked at: a graph that reached out of it would cost everybody the GPU.
Status check_extent(const run::cuda::DeviceMemory& memory, std::uint64_t said) {
  run::cuda::api::DevicePointer base = 0;
  std::size_t found = 0;
  EAGLE_RETURN_IF_ERROR(memory.device()->run("cuMemGetAddressRange", [&](const auto& call) {
    return call.cuMemGetAddressRange(&base, &found, memory.address());
  }));
  if (found >= said) return {};
  return {Reason::bad_value, "expected the handle of an allocation of " + std::to_string(said) +
                                 " bytes, found one of " + std::to_string(found)};
}

}  // namespace

StatusOr<std::shared_ptr<run::cuda::Opening>> Gpus::begin_opening(const run::cuda::Devices::Unit& unit,
                                                                  const run::cuda::DeviceHandle& handle) {
  if (opening_.fetch_add(1) >= most_openings) {
    opening_.fetch_sub(1);
    return Status(Reason::quota, text_of(unit.info()) + ": the driver has " + std::to_string(most_openings) +
                                     " imports of memory to open already (cuIpcOpenMemHandle), and has not "
                                     "come back; try again later, or copy the values instead");
  }
  run::cuda::DeviceHandle whole;
  whole.uuid = handle.uuid;
  whole.ipc = handle.ipc;
  whole.allocation = whole.bytes = handle.allocation;
  auto begun =
      run::cuda::Opening::begin(unit.device, std::move(whole), run::cuda::DeviceMemory::Users::engine,
                                [gpus = shared_from_this()] { gpus->opening_.fetch_sub(1); });
  if (!begun.ok()) opening_.fetch_sub(1);
  return begun;
}

StatusOr<std::shared_ptr<const GpuMemory>> Gpus::import(const run::cuda::DeviceHandle& handle,
                                                        std::chrono::milliseconds patience) {
  if (patience == std::chrono::milliseconds(0)) {
    return Status(
        Reason::permission_denied,
        "memory that a client made on a GPU is not imported here ([limits] import_ms = 0); copy the "
        "values instead: x[...] = array");
  }
  const auto unit = find(handle.uuid);
  if (!unit.ok()) {
    return Status(Reason::mixed_devices,
                  "memory of " + handle.uuid + " cannot be imported: " + unit.status().message());
  }
  std::uint64_t end = 0;
  if (handle.bytes == 0 || __builtin_add_overflow(handle.offset, handle.bytes, &end) ||
      end > handle.allocation) {
    return Status(Reason::bad_value,
                  "expected bytes of an allocation of " + std::to_string(handle.allocation) + ", found " +
                      std::to_string(handle.bytes) + " from byte " + std::to_string(handle.offset) + " on");
  }
  EAGLE_ASSIGN_OR_RETURN(const auto allocation, opened(*unit, handle, patience));
  EAGLE_RETURN_IF_ERROR(check_extent(allocation->memory(), handle.allocation));
  EAGLE_RETURN_IF_ERROR(charge(**unit, 0, "an import", 1));
  const auto made = std::make_shared<GpuMemory>(shared_from_this(), *unit, 0);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return Status(Reason::system, std::string("pipe2: ") + std::strerror(errno));
  made->until_closed_ = UniqueFd(ends[0]);
  made->closed_ = UniqueFd(ends[1]);
  made->memory_ = run::cuda::DeviceMemory::borrow(
      (*unit)->device, allocation->memory().address() + handle.offset, handle.bytes, allocation);
  const std::lock_guard lock(imports_mutex_);
  Imports& imports = imports_[key_of(handle)];
  imports.allocation = allocation;  // somebody who waited for it and gave up may have forgotten it
  auto& parts = imports.parts;
  std::erase_if(parts, [](const auto& part) { return part.second.memory.expired(); });
  for (const auto& [first, part] : parts) {
    if (first >= end || part.end <= handle.offset) continue;
    auto same = part.memory.lock();
    if (same == nullptr) continue;
    if (first == handle.offset && part.end == end) return same;
    return Status(Reason::bad_value,
                  "bytes " + std::to_string(handle.offset) + " to " + std::to_string(end) +
                      " of an allocation on " + text_of((*unit)->info()) + ", of which bytes " +
                      std::to_string(first) + " to " + std::to_string(part.end) +
                      " are imported already, as another array; import one array, and bind slices of it");
  }
  parts[handle.offset] = {end, made};
  return std::shared_ptr<const GpuMemory>(made);
}

StatusOr<std::shared_ptr<run::cuda::Opening>> Gpus::opened(
    const std::shared_ptr<const run::cuda::Devices::Unit>& unit, const run::cuda::DeviceHandle& handle,
    std::chrono::milliseconds patience) {
  std::shared_ptr<run::cuda::Opening> allocation;
  {
    const std::lock_guard lock(imports_mutex_);
    std::erase_if(imports_, [](const auto& one) {
      return one.second.allocation.expired() && std::ranges::all_of(one.second.parts, [](const auto& part) {
               return part.second.memory.expired();
             });
    });
    Imports& imports = imports_[key_of(handle)];
    allocation = imports.allocation.lock();
    if (allocation == nullptr) {
      EAGLE_ASSIGN_OR_RETURN(allocation, begin_opening(*unit, handle));
      imports.allocation = allocation;
    }
  }
  const Status done =
      allocation->wait(patience, "try again, copy the values instead, or raise [limits] import_ms");
  if (done.ok()) return allocation;
  {
    const std::lock_guard lock(imports_mutex_);
    const auto failed = imports_.find(key_of(handle));
    // The next one tries anew.
    if (failed != imports_.end() && failed->second.allocation.lock() == allocation)
      failed->second.allocation.reset();
  }
  return done.within("import of memory on " + text_of(unit->info()));
}

StatusOr<UniqueFd> GpuMemory::descriptor() const {
  UniqueFd descriptor(::fcntl(until_closed_.get(), F_DUPFD_CLOEXEC, 0));
  if (descriptor.valid()) return descriptor;
  return Status(Reason::system, std::string("a descriptor of imported memory: ") + std::strerror(errno));
}

std::shared_ptr<PlaneBytes> GpuMemory::shared_bytes(
    const std::function<std::shared_ptr<PlaneBytes>()>& make) const {
  const std::lock_guard lock(bytes_mutex_);
  std::shared_ptr<PlaneBytes> bytes = bytes_.lock();
  if (bytes == nullptr) bytes_ = bytes = make();
  return bytes;
}

}  // namespace eagle::server
