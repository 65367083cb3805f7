#include "client/plane_registry.h"

#include <pthread.h>

#include <mutex>
#include <new>
#include <utility>

namespace eagle {
namespace {

std::uintptr_t address_of(const Buffer& buffer) { return reinterpret_cast<std::uintptr_t>(buffer.data()); }

}  // namespace

PlaneRegistry& PlaneRegistry::of_process() {
  static PlaneRegistry* const registry = [] {
    auto* const made = new PlaneRegistry;
    // The thread that locked it has another number in the child, where unlocking would take it for a reader:
    // the child gets a lock anew. Nobody else runs there.
    ::pthread_atfork([] { of_process().mutex_.lock(); }, [] { of_process().mutex_.unlock(); },
                     [] { new (&of_process().mutex_) std::shared_mutex; });
    return made;
  }();
  return *registry;
}

void PlaneRegistry::add(const Buffer& buffer, RegisteredArray array) {
  const std::unique_lock lock(mutex_);
  arrays_[address_of(buffer)] = {buffer.bytes(), std::move(array)};
}

void PlaneRegistry::remove(const Buffer& buffer) {
  const std::unique_lock lock(mutex_);
  arrays_.erase(address_of(buffer));
}

std::optional<PlaneAddress> PlaneRegistry::find(const std::string& session, const void* address,
                                                std::uint64_t bytes) const {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  const std::shared_lock lock(mutex_);
  auto it = arrays_.upper_bound(first);
  if (it == arrays_.begin()) return std::nullopt;
  --it;
  const auto& [start, entry] = *it;
  const std::uint64_t offset = first - start;
  if (offset > entry.bytes || bytes > entry.bytes - offset) return std::nullopt;
  if (*entry.array.session != session) return std::nullopt;
  std::shared_ptr<Buffer> buffer = entry.array.buffer.lock();
  if (!buffer) return std::nullopt;  // its last owner is just gone
  return PlaneAddress{entry.array.plane, entry.array.plane_bytes, entry.array.offset + offset,
                      entry.array.label, std::move(buffer),       entry.array.alone,
                      entry.array.offset};
}

std::optional<std::string> PlaneRegistry::session_at(std::uintptr_t first, std::uintptr_t last) const {
  const std::shared_lock lock(mutex_);
  auto it = arrays_.lower_bound(last);  // the last array that starts before `last` ends furthest of all
  if (it == arrays_.begin()) return std::nullopt;
  --it;
  if (it->first + it->second.bytes <= first) return std::nullopt;
  return *it->second.array.session;
}

std::vector<SessionPlane> PlaneRegistry::planes_of(const std::string& session) const {
  std::map<std::uint64_t, SessionPlane> planes;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [first, entry] : arrays_) {
      const RegisteredArray& array = entry.array;
      if (*array.session != session) continue;
      SessionPlane plane{array.plane.id, array.label, array.plane_bytes, "borrowed",
                         "the engine is in this process"};
      plane.generation = array.plane.generation;
      if (!array.device.empty()) {
        plane.transport = "pointer";
        plane.device = array.device;
      }
      planes.try_emplace(array.plane.id, std::move(plane));
    }
  }
  std::vector<SessionPlane> all;
  for (auto& [id, plane] : planes) all.push_back(std::move(plane));
  return all;
}

}  // namespace eagle
