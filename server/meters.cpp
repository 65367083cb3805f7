#include "server/meters.h"

#include <algorithm>
#include <cmath>

namespace eagle::server {

void Durations::observe(double seconds) {
  const auto* const bound = std::lower_bound(bounds.begin(), bounds.end(), seconds);
  count(counts_[static_cast<std::size_t>(bound - bounds.begin())]);
  count(sum_ns_, static_cast<std::uint64_t>(std::max(seconds, 0.0) * 1e9));
}

std::array<std::uint64_t, Durations::bounds.size() + 1> Durations::counts() const {
  std::array<std::uint64_t, bounds.size() + 1> now{};
  for (std::size_t i = 0; i < now.size(); ++i) now[i] = counts_[i].load(std::memory_order_relaxed);
  return now;
}

std::shared_ptr<TenantMeter> TenantMeters::of(const std::string& tenant) {
  const std::string label = label_of(tenant);
  const std::lock_guard lock(mutex_);
  auto& meter = by_label_[label];
  if (!meter) meter = std::make_shared<TenantMeter>();
  return meter;
}

std::string TenantMeters::label_of(const std::string& tenant) const {
  if (tenant.starts_with("anonymous:")) return "anonymous";
  const std::lock_guard lock(mutex_);
  return by_label_.contains(tenant) || by_label_.size() < most ? tenant : "other";
}

std::map<std::string, std::shared_ptr<const TenantMeter>> TenantMeters::all() const {
  const std::lock_guard lock(mutex_);
  return {by_label_.begin(), by_label_.end()};
}

}  // namespace eagle::server
