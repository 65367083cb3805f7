// The entry points of memory: allocations, what is mapped by hand, and what other processes open.
//
// Strict where a driver may be: memory that was freed while somebody else has it open holds other values from
// then on, what is mapped cannot be touched before access is given, sizes are multiples of the granularity,
// and a handle is refused in the process that made it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "tests/fake_cuda/world.h"

namespace eagle::fake_cuda {
namespace {

constexpr std::uint64_t granularity = std::uint64_t{2} << 20;
constexpr std::uint64_t page = 4096;
constexpr unsigned char uncleared = 0xa5;  // what memory holds that was just made
constexpr unsigned char freed = 0xdd;      // and what it holds once it is somebody else's

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + page - 1) / page * page; }

// Addresses that nobody may touch, with a page behind them; 0: the system has none.
std::uint64_t reserve(std::uint64_t bytes) {
  void* const data = ::mmap(nullptr, whole_pages(bytes) + page, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return data == MAP_FAILED ? 0 : reinterpret_cast<std::uint64_t>(data);
}
void give_back(std::uint64_t address, std::uint64_t bytes) {
  ::munmap(reinterpret_cast<void*>(address), whole_pages(bytes) + page);
}
bool place(std::uint64_t address, const Physical& physical, int access) {
  return ::mmap(reinterpret_cast<void*>(address), physical.bytes(), access, MAP_SHARED | MAP_FIXED,
                physical.descriptor(), 0) != MAP_FAILED;
}

// What a handle of 64 bytes says.
struct IpcContent {
  char magic[8] = {'f', 'a', 'k', 'e', 'i', 'p', 'c', '1'};
  std::int64_t process = 0;
  std::int64_t descriptor = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(IpcContent) <= sizeof(api::IpcHandle));

bool is_granted(std::uint64_t bytes) { return bytes > 0 && bytes % granularity == 0; }

}  // namespace

Physical::Physical(int descriptor, std::uint64_t bytes, api::ContextRecord* context)
    : descriptor_(descriptor), bytes_(bytes), context_(context) {
  if (context_ != nullptr) context_->allocated += bytes_;
}
Physical::~Physical() {
  if (context_ != nullptr) context_->allocated -= bytes_;
  ::close(descriptor_);
}

std::shared_ptr<Physical> Physical::create(std::uint64_t bytes, api::ContextRecord& context) {
  const int descriptor = ::memfd_create("fake GPU", MFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  if (::ftruncate(descriptor, static_cast<off_t>(whole_pages(bytes))) != 0) {
    ::close(descriptor);
    return nullptr;
  }
  return std::make_shared<Physical>(descriptor, bytes, &context);
}

}  // namespace eagle::fake_cuda

using namespace eagle::fake_cuda;  // NOLINT: the functions below have the driver's names

extern "C" {

Result cuMemAlloc_v2(api::DevicePointer* pointer, std::size_t bytes) {
  return in_context([&](api::ContextRecord& context) {
    if (spoils_capture(context)) return api::capture_unsupported;
    if (bytes == 0) return api::invalid_value;
    const bool fails = ++world().allocated == pretence().fail_alloc;
    if (fails || bytes > pretence().bytes - context.allocated) return api::out_of_memory;
    const auto physical = Physical::create(bytes, context);
    const std::uint64_t address = physical ? reserve(bytes) : 0;
    if (address == 0 || !place(address, *physical, PROT_READ | PROT_WRITE)) return api::out_of_memory;
    std::memset(reinterpret_cast<void*>(address), uncleared, bytes);
    world().allocations[address] = {Allocation::Kind::allocated, physical, bytes, &context};
    *pointer = address;
    return api::success;
  });
}

// What is enqueued may use it, and comes first.
Result cuMemFree_v2(api::DevicePointer pointer) {
  const Result asked = in_context([&](api::ContextRecord& context) {
    return spoils_capture(context, true) ? api::capture_unsupported : api::success;
  });
  if (asked != api::success) return asked;
  if (const Result waited = wait_for_all(); waited != api::success) return waited;
  return in_context([&](api::ContextRecord&) {
    const auto found = world().allocations.find(pointer);
    // Interior pointers among them, and what was mapped or opened.
    const bool ours =
        found != world().allocations.end() &&
        (found->second.kind == Allocation::Kind::allocated || found->second.kind == Allocation::Kind::pooled);
    if (!ours) return api::invalid_value;
    std::memset(reinterpret_cast<void*>(pointer), freed, found->second.bytes);
    give_back(pointer, found->second.bytes);
    world().allocations.erase(found);
    return api::success;
  });
}

// Of the device's stream-ordered pool, at once: no other process opens it, and no context has it. In a
// capture it is a node of the graph, whose memory nobody touches here. The engine does not call it.
Result cuMemAllocAsync(api::DevicePointer* pointer, std::size_t bytes, api::Stream stream) {
  bool captured = false;
  const Result noted = in_context([&](api::ContextRecord& context) {
    const auto found = stream_of(context, stream);
    if (!found || bytes == 0) return api::invalid_value;
    if (!found->capture) return api::success;
    captured = true;
    *pointer = 0x1000;
    return enqueue(*found, api::GraphMemory{}) ? api::success : api::capture_invalidated;
  });
  if (noted != api::success || captured) return noted;
  const Result made = cuMemAlloc_v2(pointer, bytes);
  if (made == api::success) {
    const std::lock_guard lock(world().mutex);
    world().allocations[*pointer].kind = Allocation::Kind::pooled;
  }
  return made;
}

// As a driver does, it knows the addresses of every context.
Result cuPointerGetAttribute(void* value, int attribute, api::DevicePointer pointer) {
  const std::lock_guard lock(world().mutex);
  const Allocation* const found = allocation_at(pointer);
  if (!world().initialised || found == nullptr || found->context == nullptr) return api::invalid_value;
  switch (attribute) {
    case api::pointer_context: {
      const bool known =
          found->kind == Allocation::Kind::allocated || found->kind == Allocation::Kind::opened;
      *static_cast<api::Context*>(value) = known ? found->context : nullptr;
      return api::success;
    }
    case api::pointer_memory_type:
      *static_cast<int*>(value) = api::memory_of_device;
      return api::success;
    case api::pointer_device_ordinal:
      *static_cast<int*>(value) = found->context->ordinal;
      return api::success;
    default:
      return api::invalid_value;
  }
}

Result cuMemGetAddressRange_v2(api::DevicePointer* base, std::size_t* bytes, api::DevicePointer pointer) {
  return in_context([&](api::ContextRecord&) {
    const Allocation* const found = allocation_at(pointer, base);
    if (found == nullptr) return api::not_found;
    *bytes = found->bytes;
    return api::success;
  });
}

// What writes to the device is only enqueued in the default stream, as a driver may do it; what the host gets
// is there, and comes behind that.
Result cuMemcpyHtoD_v2(api::DevicePointer to, const void* from, std::size_t bytes) {
  return in_context([&](api::ContextRecord& context) {
    if (spoils_capture(context)) return api::capture_unsupported;
    if (!is_there(to, bytes)) return api::invalid_value;
    const auto* const begin = static_cast<const std::byte*>(from);
    enqueue(*stream_of(context, nullptr), api::HostCopy{to, {begin, begin + bytes}});
    return api::success;
  });
}

Result cuMemcpyDtoH_v2(void* to, api::DevicePointer from, std::size_t bytes) {
  const Result asked = in_context([&](api::ContextRecord& context) {
    if (spoils_capture(context)) return api::capture_unsupported;
    return is_there(from, bytes) ? api::success : api::invalid_value;
  });
  if (asked != api::success) return asked;
  if (const Result waited = wait_for_default(); waited != api::success) return waited;
  return in_context([&](api::ContextRecord&) {
    if (!is_there(from, bytes)) return api::invalid_value;
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return api::success;
  });
}

Result cuMemsetD8_v2(api::DevicePointer to, unsigned char value, std::size_t bytes) {
  return in_context([&](api::ContextRecord& context) {
    if (spoils_capture(context)) return api::capture_unsupported;
    if (!is_there(to, bytes)) return api::invalid_value;
    enqueue(*stream_of(context, nullptr), api::Memset{to, value, bytes});
    return api::success;
  });
}

Result cuMemcpy2D_v2(const api::CopyRows* copy) {
  if (copy->to_kind == api::memory_of_host) {
    if (const Result waited = wait_for_default(); waited != api::success) return waited;
  }
  return in_context([&](api::ContextRecord& context) {
    if (spoils_capture(context)) return api::capture_unsupported;
    const bool whole = copy->from_x == 0 && copy->from_y == 0 && copy->to_x == 0 && copy->to_y == 0 &&
                       copy->from_array == nullptr && copy->to_array == nullptr && copy->bytes > 0 &&
                       copy->rows > 0 && copy->from_pitch >= copy->bytes && copy->to_pitch >= copy->bytes;
    if (!whole) return api::invalid_value;
    const auto last = [&](std::size_t pitch) { return (copy->rows - 1) * pitch + copy->bytes; };
    if ((copy->from_kind == api::memory_of_device && !is_there(copy->from_device, last(copy->from_pitch))) ||
        (copy->to_kind == api::memory_of_device && !is_there(copy->to_device, last(copy->to_pitch))))
      return api::invalid_value;
    const auto* from = copy->from_kind == api::memory_of_device
                           ? reinterpret_cast<const std::byte*>(copy->from_device)
                           : static_cast<const std::byte*>(copy->from_host);
    auto* to = copy->to_kind == api::memory_of_device ? reinterpret_cast<std::byte*>(copy->to_device)
                                                      : static_cast<std::byte*>(copy->to_host);
    for (std::size_t row = 0; row < copy->rows; ++row) {
      const auto* const begin = from + row * copy->from_pitch;
      if (copy->to_kind == api::memory_of_host) {
        std::memcpy(to + row * copy->to_pitch, begin, copy->bytes);
      } else if (copy->from_kind == api::memory_of_host) {
        enqueue(*stream_of(context, nullptr),
                api::HostCopy{copy->to_device + row * copy->to_pitch, {begin, begin + copy->bytes}});
      } else {
        enqueue(*stream_of(context, nullptr),
                api::DeviceCopy{copy->to_device + row * copy->to_pitch,
                                reinterpret_cast<std::uint64_t>(begin), copy->bytes});
      }
    }
    return api::success;
  });
}

// ---- by descriptor

Result cuMemGetAllocationGranularity(std::size_t* bytes, const api::AllocationProperties* properties, int) {
  if (properties == nullptr || !pretence().descriptors) return api::invalid_value;
  *bytes = granularity;
  return api::success;
}

Result cuMemCreate(std::uint64_t* handle, std::size_t bytes, const api::AllocationProperties* properties,
                   unsigned long long flags) {
  return in_context([&](api::ContextRecord& context) {
    if (spoils_capture(context)) return api::capture_unsupported;
    if (flags != 0 || !is_granted(bytes) || !pretence().descriptors || properties->type != 1 ||
        properties->location.type != 1 || properties->location.id != context.ordinal)
      return api::invalid_value;
    const bool fails = ++world().allocated == pretence().fail_alloc;
    if (fails || bytes > pretence().bytes - context.allocated) return api::out_of_memory;
    const auto physical = Physical::create(bytes, context);
    void* const data =
        physical ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, physical->descriptor(), 0)
                 : MAP_FAILED;
    if (data == MAP_FAILED) return api::out_of_memory;
    std::memset(data, uncleared, bytes);
    ::munmap(data, bytes);
    world().physical[*handle = ++world().last_handle] = physical;
    return api::success;
  });
}

Result cuMemRelease(std::uint64_t handle) {
  return in_context([&](api::ContextRecord& context) {
    if (spoils_capture(context, true)) return api::capture_unsupported;
    return world().physical.erase(handle) == 1 ? api::success : api::invalid_value;
  });
}

Result cuMemAddressReserve(api::DevicePointer* pointer, std::size_t bytes, std::size_t, api::DevicePointer,
                           unsigned long long flags) {
  return in_context([&](api::ContextRecord&) {
    if (flags != 0 || !is_granted(bytes)) return api::invalid_value;
    const std::uint64_t address = reserve(bytes);
    if (address == 0) return api::out_of_memory;
    world().reserved[*pointer = address] = bytes;
    return api::success;
  });
}

Result cuMemAddressFree(api::DevicePointer pointer, std::size_t bytes) {
  return in_context([&](api::ContextRecord&) {
    const auto found = world().reserved.find(pointer);
    if (found == world().reserved.end() || found->second != bytes || world().allocations.count(pointer) != 0)
      return api::invalid_value;
    world().reserved.erase(found);
    give_back(pointer, bytes);
    return api::success;
  });
}

Result cuMemMap(api::DevicePointer pointer, std::size_t bytes, std::size_t offset, std::uint64_t handle,
                unsigned long long flags) {
  return in_context([&](api::ContextRecord& context) {
    const auto reserved = world().reserved.find(pointer);
    const auto physical = world().physical.find(handle);
    if (flags != 0 || offset != 0 || reserved == world().reserved.end() || reserved->second != bytes ||
        physical == world().physical.end() || physical->second->bytes() != bytes ||
        world().allocations.count(pointer) != 0)
      return api::invalid_value;
    if (!place(pointer, *physical->second, PROT_NONE)) return api::out_of_memory;
    world().allocations[pointer] = {Allocation::Kind::mapped, physical->second, bytes, &context, false};
    return api::success;
  });
}

Result cuMemUnmap(api::DevicePointer pointer, std::size_t bytes) {
  return in_context([&](api::ContextRecord& context) {
    if (spoils_capture(context, true)) return api::capture_unsupported;
    const auto found = world().allocations.find(pointer);
    if (found == world().allocations.end() || found->second.kind != Allocation::Kind::mapped ||
        found->second.bytes != bytes)
      return api::invalid_value;
    world().allocations.erase(found);
    ::mmap(reinterpret_cast<void*>(pointer), bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return api::success;
  });
}

Result cuMemSetAccess(api::DevicePointer pointer, std::size_t bytes, const api::AccessDescription* access,
                      std::size_t count) {
  return in_context([&](api::ContextRecord& context) {
    const auto found = world().allocations.find(pointer);
    if (found == world().allocations.end() || found->second.kind != Allocation::Kind::mapped ||
        found->second.bytes != bytes || count != 1 || access->location.id != context.ordinal ||
        access->flags != 3)
      return api::invalid_value;
    ::mprotect(reinterpret_cast<void*>(pointer), bytes, PROT_READ | PROT_WRITE);
    found->second.accessible = true;
    return api::success;
  });
}

Result cuMemExportToShareableHandle(void* shareable, std::uint64_t handle, int kind,
                                    unsigned long long flags) {
  return in_context([&](api::ContextRecord&) {
    const auto physical = world().physical.find(handle);
    if (flags != 0 || kind != api::handle_posix_descriptor || physical == world().physical.end())
      return api::invalid_value;
    const int descriptor = ::fcntl(physical->second->descriptor(), F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) return api::unknown;
    *static_cast<int*>(shareable) = descriptor;
    return api::success;
  });
}

Result cuMemImportFromShareableHandle(std::uint64_t* handle, void* shareable, int kind) {
  return in_context([&](api::ContextRecord&) {
    const int given = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
    struct stat file {};
    if (kind != api::handle_posix_descriptor || !pretence().descriptors || ::fstat(given, &file) != 0 ||
        !is_granted(static_cast<std::uint64_t>(file.st_size)))
      return api::invalid_value;
    const int descriptor = ::fcntl(given, F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) return api::unknown;
    world().physical[*handle = ++world().last_handle] =
        std::make_shared<Physical>(descriptor, static_cast<std::uint64_t>(file.st_size), nullptr);
    return api::success;
  });
}

// ---- by 64 bytes

Result cuIpcGetMemHandle(api::IpcHandle* handle, api::DevicePointer pointer) {
  return in_context([&](api::ContextRecord&) {
    const auto found = world().allocations.find(pointer);
    if (found == world().allocations.end() || found->second.kind != Allocation::Kind::allocated)
      return api::invalid_value;
    IpcContent content;
    content.process = ::getpid();
    content.descriptor = found->second.physical->descriptor();
    content.bytes = found->second.bytes;
    *handle = {};
    std::memcpy(handle->bytes, &content, sizeof content);
    return api::success;
  });
}

Result cuIpcOpenMemHandle_v2(api::DevicePointer* pointer, api::IpcHandle handle, unsigned flags) {
  // Without the lock: one call that is slow makes no other one so.
  std::this_thread::sleep_for(std::chrono::milliseconds(pretence().slow_open));
  return in_context([&](api::ContextRecord& context) {
    IpcContent content;
    const IpcContent empty;
    std::memcpy(&content, handle.bytes, sizeof content);
    if (flags != api::ipc_lazy_peer_access ||
        std::memcmp(content.magic, empty.magic, sizeof empty.magic) != 0)
      return api::invalid_value;
    if (content.process == ::getpid()) return api::invalid_context;
    const std::string name(handle.bytes, sizeof handle.bytes);
    for (auto& [address, allocation] : world().allocations) {
      if (allocation.ipc_handle != name) continue;
      ++allocation.opened;
      *pointer = address;
      return api::success;
    }
    const std::string path =
        "/proc/" + std::to_string(content.process) + "/fd/" + std::to_string(content.descriptor);
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat file {};
    if (descriptor < 0) return api::invalid_handle;  // it was freed, or its process has ended
    const auto physical = std::make_shared<Physical>(descriptor, content.bytes, nullptr);
    if (::fstat(descriptor, &file) != 0 || static_cast<std::uint64_t>(file.st_size) < content.bytes)
      return api::invalid_handle;
    const std::uint64_t address = reserve(content.bytes);
    if (address == 0 || !place(address, *physical, PROT_READ | PROT_WRITE)) return api::out_of_memory;
    world().allocations[address] = {
        Allocation::Kind::opened, physical, content.bytes, &context, true, 1, name};
    *pointer = address;
    return api::success;
  });
}

Result cuIpcCloseMemHandle(api::DevicePointer pointer) {
  return in_context([&](api::ContextRecord& context) {
    if (spoils_capture(context, true)) return api::capture_unsupported;
    const auto found = world().allocations.find(pointer);
    if (found == world().allocations.end() || found->second.kind != Allocation::Kind::opened)
      return api::invalid_value;
    if (--found->second.opened > 0) return api::success;
    give_back(pointer, found->second.bytes);
    world().allocations.erase(found);
    return api::success;
  });
}
}
