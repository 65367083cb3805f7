// PlaneRegistry: which memory of this process belongs to which session, by address.
//
// Sessions cannot see into each other, yet an array of one must not slip into a graph of another as
// "private memory". So every array that a session allocates is entered here, whatever its host, and found
// again from any view of it, however it was sliced or reinterpreted. Thread-safe; look-ups take
// O(log arrays).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "client/host.h"
#include "eagle/client/array.h"
#include "engine/graph/graph.h"

namespace eagle {

// Where an array lies in its session's memory.
struct RegisteredArray {
  std::shared_ptr<const std::string> session;  // its host's name
  graph::PlaneId plane;
  std::uint64_t plane_bytes = 0;
  std::uint64_t offset = 0;  // of the array within the plane
  std::string label;
  std::weak_ptr<Buffer> buffer;
  std::string device = {};  // "cuda:0"; empty: the host's memory
  bool alone = false;       // nothing else lies in the plane
};

class PlaneRegistry {
public:
  // The one of this process. It is never destroyed: arrays may outlive every other static object. A forked
  // child has it as it was between two calls.
  static PlaneRegistry& of_process();

  void add(const Buffer& buffer, RegisteredArray array);
  // Before the memory goes back to where it came from.
  void remove(const Buffer& buffer);

  // The array of `session` that holds [address, address + bytes) whole. An empty range may also lie at an
  // array's very end.
  [[nodiscard]] std::optional<PlaneAddress> find(const std::string& session, const void* address,
                                                 std::uint64_t bytes) const;
  // The session of some array that shares a byte with [first, last).
  [[nodiscard]] std::optional<std::string> session_at(std::uintptr_t first, std::uintptr_t last) const;

  // The planes of the arrays of `session` that are alive, by id: what is known here of a host in this
  // process.
  [[nodiscard]] std::vector<SessionPlane> planes_of(const std::string& session) const;

private:
  struct Entry {
    std::uint64_t bytes = 0;
    RegisteredArray array;
  };
  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, Entry> arrays_;  // by first byte; they are disjoint
};

}  // namespace eagle
