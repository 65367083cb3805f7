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
  // The array over exactly these bytes while somebody has it, else what `make` gives. PLANE_OVERLAP for bytes
  // that share some with another one. One at a time.
  template <typename Make>
  StatusOr<std::shared_ptr<Buffer>> find_or(std::uint64_t address, std::uint64_t bytes, const Make& make) {
    std::vector<std::shared_ptr<Buffer>> seen;  // goes after the lock: an array's owner is the caller's
    const std::scoped_lock lock(mutex_);
    EAGLE_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> found, find(address, bytes, seen));
    if (found != nullptr) return found;
    EAGLE_ASSIGN_OR_RETURN(found, make());
    ranges_[address] = {bytes, found};
    return found;
  }

private:
  // Null: there is none.
  StatusOr<std::shared_ptr<Buffer>> find(std::uint64_t address, std::uint64_t bytes,
                                         std::vector<std::shared_ptr<Buffer>>& seen);

  struct Range {
    std::uint64_t bytes = 0;
    std::weak_ptr<Buffer> buffer;
  };
  std::mutex mutex_;
  std::map<std::uint64_t, Range> ranges_;  // by address
};

}  // namespace eagle
