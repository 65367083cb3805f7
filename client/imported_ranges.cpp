#include "client/imported_ranges.h"

#include <algorithm>
#include <string>

namespace eagle {

StatusOr<std::shared_ptr<Buffer>> ImportedRanges::find(const ImportedMemory& memory,
                                                       std::vector<std::shared_ptr<Buffer>>& seen) {
  const std::uint64_t address = memory.pointer, bytes = memory.bytes;
  std::erase_if(ranges_, [](const auto& one) { return one.second.buffer.expired(); });
  for (const auto& [first, range] : ranges_) {
    if (address >= first + range.bytes || first >= address + bytes) continue;
    const std::shared_ptr<Buffer> buffer = seen.emplace_back(range.buffer.lock());
    if (buffer == nullptr) continue;
    if (first == address && range.bytes == bytes) {
      const auto owners = range.owners.lock();
      if (owners != nullptr && std::find(owners->begin(), owners->end(), memory.owner) == owners->end())
        owners->push_back(memory.owner);
      return buffer;
    }
    return Status(Reason::plane_overlap,
                  "these " + std::to_string(bytes) + " bytes share some with an array of " +
                      std::to_string(range.bytes) + " bytes on " + buffer->device() +
                      " that the session has imported already; import the larger one, and bind slices of it");
  }
  return std::shared_ptr<Buffer>();
}

}  // namespace eagle
