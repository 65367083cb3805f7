#include "server/transfers.h"

#include <algorithm>
#include <string>

namespace eagle::server {

StatusOr<Transfers::Transfer> Transfers::admit(std::size_t& before) {
  const std::size_t most = limits_.transfers;
  before = count_->load();
  do {
    if (before >= most) {
      return Status(Reason::quota, "the session has " + std::to_string(before) +
                                       " transfers of planes under way and may have " + std::to_string(most) +
                                       " (transfers); finish reading or writing some, or cancel them");
    }
  } while (!count_->compare_exchange_weak(before, before + 1));
  Transfer transfer;
  transfer.counted = {count_.get(), [count = count_](const void*) { count->fetch_sub(1); }};
  return transfer;
}

StatusOr<Transfers::Transfer> Transfers::begin_read(std::uint64_t bytes) {
  std::size_t before = 0;
  EAGLE_ASSIGN_OR_RETURN(Transfer transfer, admit(before));
  transfer.chunk_bytes = std::min<std::uint64_t>(bytes, limits_.chunk_bytes);
  auto held = hold_bytes(budget_, tenant_.get(), "a chunk of a plane that is read", 2 * transfer.chunk_bytes);
  if (held.ok()) {
    transfer.held = *std::move(held);
    return transfer;
  }
  if (before > 0) return held.status();
  transfer.chunk_bytes = std::min(transfer.chunk_bytes, least_chunk_bytes);
  transfer.held.charge = budget_.adopt_other(2 * transfer.chunk_bytes);
  return transfer;
}

StatusOr<Transfers::Transfer> Transfers::begin_write() {
  std::size_t before = 0;
  return admit(before);
}

}  // namespace eagle::server
