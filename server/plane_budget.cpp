#include "server/plane_budget.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "server/recycled_memory.h"

namespace eagle::server {

PlaneBudget::PlaneBudget(std::uint64_t bytes, std::size_t planes, std::uint64_t recycled_bytes)
    : bytes_(bytes), planes_(planes), recycled_(std::make_unique<RecycledMemory>(recycled_bytes)) {}

PlaneBudget::~PlaneBudget() = default;

PlaneBudget::Charge::Charge(Charge&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}

PlaneBudget::Charge& PlaneBudget::Charge::operator=(Charge&& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

PlaneBudget::Charge::~Charge() {
  if (budget_ != nullptr) budget_->give_back(bytes_);
}

StatusOr<PlaneBudget::Charge> PlaneBudget::charge(std::uint64_t bytes) {
  for (;;) {
    auto charge = try_charge(bytes);
    if (charge.ok() || bytes > bytes_ || !recycled_->give_back_oldest()) return charge;
  }
}

StatusOr<PlaneBudget::Charge> PlaneBudget::try_charge(std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::lock_guard lock(mutex_);
  const std::uint64_t left = bytes_ - std::min(bytes_, used_bytes_);
  if (bytes > left || (bytes + page - 1) / page * page > left) {
    return Status(Reason::plane_budget,
                  "a plane of " + std::to_string(bytes) + " bytes does not fit: " +
                      std::to_string(used_bytes_) + " of the daemon's budget of " + std::to_string(bytes_) +
                      " bytes are in use; release planes, use smaller ones, or start the "
                      "daemon with a larger --plane-budget");
  }
  if (used_planes_ >= planes_) {
    return Status(Reason::quota, "the daemon holds " + std::to_string(planes_) +
                                     " planes, which is its limit (planes); release some, or put several "
                                     "arrays into one plane");
  }
  return take((bytes + page - 1) / page * page);
}

PlaneBudget::Charge PlaneBudget::adopt(std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::lock_guard lock(mutex_);
  return take((bytes + page - 1) / page * page);
}

PlaneBudget::Charge PlaneBudget::take(std::uint64_t pages_bytes) {
  used_bytes_ += pages_bytes;
  ++used_planes_;
  return {this, pages_bytes};
}

void PlaneBudget::give_back(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  used_bytes_ -= bytes;
  --used_planes_;
}

std::uint64_t PlaneBudget::used_bytes() const {
  const std::uint64_t kept = recycled_->bytes();
  const std::lock_guard lock(mutex_);
  return used_bytes_ - std::min(kept, used_bytes_);  // one of them may have changed in between
}

std::size_t PlaneBudget::used_planes() const {
  const std::size_t kept = recycled_->pieces();
  const std::lock_guard lock(mutex_);
  return used_planes_ - std::min(kept, used_planes_);
}

}  // namespace eagle::server
