// ImportedRanges: which bytes of GPUs a session has imported. Two planes over the same bytes would hide from
// each other what conflicts, so arrays that share some are slices of one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "eagle/client/array.h"
#include "engine/base/status.h"

namespace eagle {

// Thread-safe.
class ImportedRanges {
public:
  // The array over exactly these bytes while somebody has it, else what `make` gives of the memory that it is
  // called with. Its owners are all those from whom the bytes have been imported meanwhile: the first one may
  // have lost them to another. PLANE_OVERLAP for bytes that share some with another one. One at a time.
  template <typename Make>
  StatusOr<std::shared_ptr<Buffer>> find_or(const ImportedMemory& memory, const Make& make) {
    std::vector<std::shared_ptr<Buffer>> seen;  // goes after the lock: an array's owner is the caller's
    const std::scoped_lock lock(mutex_);
    EAGLE_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> found, find(memory, seen));
    if (found != nullptr) return found;
    const auto owners = std::make_shared<Owners>(1, memory.owner);
    EAGLE_ASSIGN_OR_RETURN(found, make(ImportedMemory{memory.pointer, memory.bytes, owners}));
    ranges_[memory.pointer] = {memory.bytes, found, owners};
    return found;
  }

private:
  using Owners = std::vector<std::shared_ptr<const void>>;  // each once; with the lock held

  // Null: there is none.
  StatusOr<std::shared_ptr<Buffer>> find(const ImportedMemory& memory,
                                         std::vector<std::shared_ptr<Buffer>>& seen);

  struct Range {
    std::uint64_t bytes = 0;
    std::weak_ptr<Buffer> buffer;
    std::weak_ptr<Owners> owners;  // kept by the buffer
  };
  std::mutex mutex_;
  std::map<std::uint64_t, Range> ranges_;  // by address
};

}  // namespace eagle
