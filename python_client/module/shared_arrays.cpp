#include "shared_arrays.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "eagle/client/session.h"
#include "errors.h"
#include "gil.h"

namespace eagle::python {
namespace {

namespace nb = nanobind;

// numpy's PyDataMem_Handler, version 1 (numpy 1.22 and later). It is part of numpy's stable binary interface,
// as are the two functions' places in its table.
struct DataMemoryAllocator {
  void* context;
  void* (*malloc)(void* context, std::size_t bytes);
  void* (*calloc)(void* context, std::size_t items, std::size_t item_bytes);
  void* (*realloc)(void* context, void* memory, std::size_t bytes);
  void (*free)(void* context, void* memory, std::size_t bytes);
};
struct DataMemoryHandler {
  char name[127];
  std::uint8_t version;
  DataMemoryAllocator allocator;
};
constexpr std::size_t set_handler_place = 304;
using SetHandler = PyObject* (*)(PyObject*);

SetHandler set_handler = nullptr;

// The arrays that numpy made in one session. Each holds the capsule around this, and so does the context.
class Memory {
public:
  explicit Memory(Session session) : session_(std::move(session)) {}

  // Null where the session has none, which numpy raises as MemoryError.
  void* allocate(std::size_t bytes, Contents contents) {
    StatusOr<std::shared_ptr<Buffer>> buffer = [&] {
      const Released released;  // numpy calls with the GIL, and the daemon may take its time
      return session_.allocate(std::max<std::size_t>(bytes, 1), "numpy", contents);
    }();
    if (!buffer.ok()) return nullptr;
    void* const memory = (*buffer)->data();
    const std::scoped_lock lock(mutex_);
    buffers_.emplace(memory, std::move(*buffer));
    return memory;
  }

  void* reallocate(void* memory, std::size_t bytes) {
    void* const fresh = allocate(bytes, Contents::any);
    if (fresh == nullptr || memory == nullptr) return fresh;
    std::memcpy(fresh, memory, std::min<std::uint64_t>(bytes, size_of(memory)));
    release(memory);
    return fresh;
  }

  void release(void* memory) {
    std::shared_ptr<Buffer> gone;  // freed after the lock
    const std::scoped_lock lock(mutex_);
    if (const auto found = buffers_.find(memory); found != buffers_.end()) {
      gone = std::move(found->second);
      buffers_.erase(found);
    }
  }

private:
  std::uint64_t size_of(void* memory) {
    const std::scoped_lock lock(mutex_);
    const auto found = buffers_.find(memory);
    return found == buffers_.end() ? 0 : found->second->bytes();
  }

  const Session session_;
  std::mutex mutex_;
  std::unordered_map<void*, std::shared_ptr<Buffer>> buffers_;
};

Memory& memory_of(void* context) { return *static_cast<Memory*>(context); }

nb::object allocator_of(const Session& session) {
  auto handler = std::make_unique<DataMemoryHandler>();
  auto held = std::make_unique<Memory>(session);
  std::strncpy(handler->name, "eagle session", sizeof handler->name - 1);
  handler->version = 1;
  handler->allocator.context = held.get();
  handler->allocator.malloc = [](void* context, std::size_t bytes) {
    return memory_of(context).allocate(bytes, Contents::any);
  };
  handler->allocator.calloc = [](void* context, std::size_t items, std::size_t item_bytes) -> void* {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(items, item_bytes, &bytes)) return nullptr;
    return memory_of(context).allocate(bytes, Contents::zeros);
  };
  handler->allocator.realloc = [](void* context, void* memory, std::size_t bytes) {
    return memory_of(context).reallocate(memory, bytes);
  };
  handler->allocator.free = [](void* context, void* memory, std::size_t) {
    memory_of(context).release(memory);
  };
  const auto destroy = [](PyObject* capsule) {
    auto* const gone = static_cast<DataMemoryHandler*>(PyCapsule_GetPointer(capsule, "mem_handler"));
    delete static_cast<Memory*>(gone->allocator.context);
    delete gone;
  };
  PyObject* const capsule = PyCapsule_New(handler.get(), "mem_handler", destroy);
  if (capsule == nullptr) throw nb::python_error();
  static_cast<void>(handler.release());
  static_cast<void>(held.release());
  return nb::steal(capsule);
}

nb::object set_allocator(const nb::object& handler) {
  PyObject* const before = set_handler(handler.is_none() ? nullptr : handler.ptr());
  if (before == nullptr) throw nb::python_error();
  return nb::steal(before);
}

SetHandler find_set_handler() {
  nb::object module;
  try {
    module = nb::module_::import_("numpy._core._multiarray_umath");
  } catch (nb::python_error&) {
    module = nb::module_::import_("numpy.core._multiarray_umath");  // numpy 1
  }
  const nb::object capsule = module.attr("_ARRAY_API");
  auto* const table = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (table == nullptr) throw nb::python_error();
  return reinterpret_cast<SetHandler>(table[set_handler_place]);
}

}  // namespace

void bind_shared_arrays(nb::module_& m) {
  set_handler = find_set_handler();
  m.def("allocator_of", allocator_of);
  m.def("set_allocator", set_allocator, nb::arg("handler").none());
}

}  // namespace eagle::python
