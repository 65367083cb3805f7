#include "engine/run/cpu/guard.h"

#include <cstring>
#include <string>

#include "engine/kernel/names.h"

namespace eagle::run {
namespace {

// One load, from an address that need not be aligned: clients choose the offsets of views.
template <typename T>
std::int64_t load_once(const std::byte* address) {
  using Unaligned [[gnu::aligned(1), gnu::may_alias]] = T;
  return static_cast<std::int64_t>(*reinterpret_cast<const volatile Unaligned*>(address));
}

}  // namespace

StatusOr<BoundGuard::Cell> BoundGuard::cell(const graph::NamedView& named,
                                            std::span<const PlaneMemory> planes) {
  std::byte* data = planes[named.view.plane].data;
  if (data == nullptr) {
    return Status(Reason::private_array,
                  "guard cell " + kernel::quote_name(named.name) + " (plane " +
                      std::to_string(named.view.plane) +
                      ") lies in memory that only the client can reach; make the array with the session, "
                      "or run the graph in process");
  }
  return Cell{data + named.view.offset, named.view.dtype, named.view.item_bytes};
}

StatusOr<BoundGuard> BoundGuard::bind(const graph::Guard& guard, std::span<const PlaneMemory> planes) {
  BoundGuard bound;
  EAGLE_ASSIGN_OR_RETURN(bound.count_, cell(guard.count, planes));
  if (guard.baseline) {
    EAGLE_ASSIGN_OR_RETURN(bound.baseline_, cell(*guard.baseline, planes));
  }
  bound.negated_ = guard.negated;
  return bound;
}

std::int64_t BoundGuard::load(const Cell& cell) {
  if (cell.dtype == plane::DType::boolean) return load_once<std::uint8_t>(cell.address) != 0 ? 1 : 0;
  switch (cell.bytes) {
    case 1:
      return load_once<std::int8_t>(cell.address);
    case 2:
      return load_once<std::int16_t>(cell.address);
    case 4:
      return load_once<std::int32_t>(cell.address);
    default:
      return load_once<std::int64_t>(cell.address);
  }
}

bool BoundGuard::holds() const {
  const std::int64_t count = load(count_);
  // Comparing is the same as subtracting and testing for zero, without an overflow to think of.
  const bool holds = count != (baseline_ ? load(*baseline_) : 0);
  return holds != negated_;
}

StatusOr<BoundCounter> BoundCounter::bind(const plane::View& view, std::span<const PlaneMemory> planes) {
  std::byte* data = planes[view.plane].data;
  if (data == nullptr) {
    return Status(
        Reason::private_array,
        "the counter of a loop (plane " + std::to_string(view.plane) +
            ") lies in memory that only the client can reach; make the array with the session, or run "
            "the graph in process");
  }
  BoundCounter bound;
  bound.address_ = data + view.offset;
  bound.bytes_ = view.item_bytes;
  return bound;
}

void BoundCounter::store(std::int64_t count) const {
  const auto small = static_cast<std::int32_t>(count);
  std::memcpy(address_, bytes_ == 4 ? static_cast<const void*>(&small) : &count, bytes_ == 4 ? 4 : 8);
}

}  // namespace eagle::run
