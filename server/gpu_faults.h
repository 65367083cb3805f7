// GpuFaults: GPUs that were lost to a fault which their driver never forgets, with what was lost, of this
// worker and the ones before it. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "server/state_log.h"

namespace eagle::v1 {
class GpuFault;
}

namespace eagle::server {

class GpuFaults {
public:
  // The oldest goes.
  static constexpr std::size_t most = 16;
  using Fault = std::shared_ptr<const v1::GpuFault>;

  // `log`: where they are written down; may be null.
  explicit GpuFaults(StateLog* log) : log_(log) {}
  // As another worker wrote it down, in the order of their ids. BAD_MESSAGE.
  Status restore(std::uint64_t id, const std::string& record);
  // SYSTEM: it is known here, and nobody takes it any more for later.
  Status add(const v1::GpuFault& fault);
  [[nodiscard]] std::vector<Fault> list() const;  // oldest first

private:
  StateLog* const log_;
  mutable std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::deque<std::pair<std::uint64_t, Fault>> faults_;  // by id
};

}  // namespace eagle::server
