// Transfers: the streams of a session's planes that are under way, and the memory that they hold.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/base/status.h"
#include "server/held_bytes.h"
#include "server/limits.h"
#include "server/plane_budget.h"
#include "server/tenants.h"

namespace eagle::server {

// Of one session. Thread-safe; the budget outlives what it hands out, this need not.
class Transfers {
public:
  // One of them, until it goes.
  struct Transfer {
    std::uint64_t chunk_bytes = 0;  // that it may hold at a time, twice: as a message and as its encoding
    HeldBytes held;
    std::shared_ptr<const void> counted;  // goes last
  };
  // A chunk of what is read to the client's network: 32 KiB in all, about what any stream costs.
  static constexpr std::uint64_t least_chunk_bytes = 16u << 10;

  Transfers(PlaneBudget& budget, const Limits& limits, std::shared_ptr<Tenant> tenant)
      : budget_(budget), limits_(limits), tenant_(std::move(tenant)) {}

  // To the client, of so many bytes: who does not read them keeps the memory of a chunk, which counts as
  // planes' does. QUOTA (transfers, tenant_plane_bytes), PLANE_BUDGET. The session's first at a time gets
  // small chunks where large ones do not fit: who filled everything with planes can still read them.
  StatusOr<Transfer> begin_read(std::uint64_t bytes);
  // From the client: holds nothing between two messages. QUOTA (transfers).
  StatusOr<Transfer> begin_write();

  [[nodiscard]] std::size_t count() const { return *count_; }

private:
  StatusOr<Transfer> admit(std::size_t& before);

  PlaneBudget& budget_;
  const Limits& limits_;
  const std::shared_ptr<Tenant> tenant_;
  const std::shared_ptr<std::atomic<std::size_t>> count_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace eagle::server
