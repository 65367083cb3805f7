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
    : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_), plane_(other.plane_) {}

PlaneBudget::Charge& PlaneBudget::Charge::operator=(Charge&& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(bytes_, other.bytes_);
  std::swap(plane_, other.plane_);
  return *this;
}

PlaneBudget::Charge::~Charge() {
  if (budget_ != nullptr) budget_->give_back(bytes_, plane_);
}

void PlaneBudget::Charge::add(Charge more) {
  if (budget_ == nullptr) {
    *this = std::move(more);
  } else if (more.budget_ != nullptr) {
    bytes_ += more.bytes_;
    more.budget_ = nullptr;
  }
}

std::uint64_t PlaneBudget::whole_pages(std::uint64_t bytes) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes > UINT64_MAX - page ? UINT64_MAX : (bytes + page - 1) / page * page;
}

StatusOr<PlaneBudget::Charge> PlaneBudget::charge(std::uint64_t bytes) {
  for (;;) {
    auto charge = try_charge(bytes);
    if (charge.ok() || bytes > bytes_ || !recycled_->give_back_oldest()) return charge;
  }
}

StatusOr<PlaneBudget::Charge> PlaneBudget::charge_for(const char* what, std::uint64_t bytes) {
  for (;;) {
    auto charge = try_charge_for(what, bytes);
    if (charge.ok() || bytes > bytes_ || !recycled_->give_back_oldest()) return charge;
  }
}

std::uint64_t PlaneBudget::left() const { return bytes_ - std::min(bytes_, used_bytes_ + other_bytes_); }

StatusOr<PlaneBudget::Charge> PlaneBudget::try_charge(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (whole_pages(bytes) > left()) {
    return Status(Reason::plane_budget,
                  "a plane of " + std::to_string(bytes) +
                      " bytes does not fit: " + std::to_string(used_bytes_ + other_bytes_) +
                      " of the daemon's budget of " + std::to_string(bytes_) +
                      " bytes are in use; release planes, use smaller ones, or start the "
                      "daemon with a larger --plane-budget");
  }
  if (used_planes_ >= planes_) {
    return Status(Reason::quota, "the daemon holds " + std::to_string(planes_) +
                                     " planes, which is its limit (planes, and never more than half of the "
                                     "descriptors that it may have, RLIMIT_NOFILE); release some, or put "
                                     "several arrays into one plane");
  }
  return take(whole_pages(bytes), true);
}

StatusOr<PlaneBudget::Charge> PlaneBudget::try_charge_for(const char* what, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > left()) {
    return Status(Reason::plane_budget,
                  std::string(what) + " takes " + std::to_string(bytes) +
                      " bytes, which do not fit: " + std::to_string(used_bytes_ + other_bytes_) +
                      " of the daemon's budget of " + std::to_string(bytes_) +
                      " bytes are in use; release graphs and planes, or start the daemon with a larger "
                      "--plane-budget");
  }
  return take(bytes, false);
}

PlaneBudget::Charge PlaneBudget::adopt(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return take(whole_pages(bytes), true);
}

PlaneBudget::Charge PlaneBudget::adopt_other(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return take(bytes, false);
}

PlaneBudget::Charge PlaneBudget::take(std::uint64_t pages_bytes, bool plane) {
  (plane ? used_bytes_ : other_bytes_) += pages_bytes;
  used_planes_ += plane ? 1 : 0;
  return {this, pages_bytes, plane};
}

void PlaneBudget::give_back(std::uint64_t bytes, bool plane) {
  const std::lock_guard lock(mutex_);
  (plane ? used_bytes_ : other_bytes_) -= bytes;
  used_planes_ -= plane ? 1 : 0;
}

std::uint64_t PlaneBudget::other_bytes() const {
  const std::lock_guard lock(mutex_);
  return other_bytes_;
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
