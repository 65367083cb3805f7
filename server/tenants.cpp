#include "server/tenants.h"

#include <algorithm>
#include <iterator>

namespace eagle::server {
namespace {

struct Kind {
  const char* what;
  const char* key;
};
constexpr std::array<Kind, held_kinds> kinds{{
    {"sessions", "tenant_sessions"},
    {"bytes of planes", "tenant_plane_bytes"},
    {"graphs", "tenant_graphs"},
    {"launches and runs in hand", "tenant_jobs"},
    {"planes", "tenant_planes"},
    {"bytes on GPUs", "tenant_gpu_bytes"},
}};

constexpr double averaged_s = 60;

std::string seconds(double s) { return std::to_string(s).substr(0, 6) + " s"; }

}  // namespace

void Allowance::pay_back(double rate, Time now) {
  const double passed = std::chrono::duration<double>(now - then_).count();
  used_ = std::max(used_ - rate * std::max(passed, 0.0), 0.0);
  then_ = now;
}

void Allowance::use(double seconds, double rate, Time now, double longest_wait_s) {
  pay_back(rate, now);
  used_ = std::min(used_ + seconds, rate * (averaged_s + longest_wait_s));
}

double Allowance::wait(double rate, Time now) {
  pay_back(rate, now);
  return rate > 0 ? std::max(used_ / rate - averaged_s, 0.0) : 0.0;
}

Tenant::Tenant(std::string name, const TenantPolicy& policy, std::shared_ptr<TenantMeter> meter)
    : name_(std::move(name)), meter_(std::move(meter)) {
  set_policy(policy);
}

TenantPolicy Tenant::policy() const {
  const std::lock_guard lock(mutex_);
  return policy_;
}

void Tenant::set_policy(const TenantPolicy& policy) {
  weight_.store(policy.weight > 0 ? policy.weight : 1, relaxed);
  priority_.store(policy.priority, relaxed);
  behind_until_.store(Clock::time_point::min(), relaxed);
  const std::lock_guard lock(mutex_);
  policy_ = policy;
  for (std::size_t i = 0; i < held_kinds; ++i) quotas_[i].store(policy.quotas[i], relaxed);
  bounds_computing_.store(policy.device_share > 0, relaxed);
}

Tenant::Flow& Tenant::flow(std::size_t lane) {
  Flow& flow = lane == 0 ? flow_ : flows_[lane];
  flow.weight = weight_.load(relaxed);
  flow.priority = priority_.load(relaxed);
  flow.behind_until = behind_until_.load(relaxed);
  return flow;
}

StatusOr<Tenant::Share> Tenant::hold(Held kind, std::uint64_t amount) {
  const auto index = static_cast<std::size_t>(kind);
  const std::uint64_t quota = quotas_[index].load(relaxed);
  std::uint64_t held = held_[index].load(relaxed);
  do {
    if (quota != 0 && (amount > quota || held > quota - amount)) {
      refused_.fetch_add(1, relaxed);
      count(meter_->refused);
      return Status(Reason::quota, "tenant '" + name_ + "' has " + std::to_string(held) + " " +
                                       kinds[index].what + " and may have " + std::to_string(quota) + " (" +
                                       kinds[index].key + "); " + std::to_string(amount) +
                                       " more would be too much; give some back, or ask the operator");
    }
  } while (!held_[index].compare_exchange_weak(held, held + amount, relaxed));
  Share share;
  share.tenant_ = shared_from_this();
  share.kind_ = kind;
  share.amount_ = amount;
  return share;
}

Status Tenant::over(const char* what, const char* key, double bound, double wait_s) {
  refused_.fetch_add(1, relaxed);
  count(meter_->refused);
  return {Reason::quota, "tenant '" + name_ + "' has used more than its part of " + what + ", " +
                             std::to_string(bound) + " (" + key + "); try again in " + seconds(wait_s)};
}

Status Tenant::may_compile(Clock::time_point now) {
  std::unique_lock lock(mutex_);
  const double bound = policy_.compile_seconds;
  const double wait_s = compiling_.wait(bound / averaged_s, now);
  lock.unlock();
  return wait_s > 0 ? over("compiling in a minute", "tenant_compile_seconds", bound, wait_s) : Status();
}

Status Tenant::may_compute(Clock::time_point now) {
  if (!bounds_computing_.load(relaxed)) return {};
  std::unique_lock lock(mutex_);
  const double bound = policy_.device_share;
  const double wait_s = bound > 0 ? computing_.wait(bound, now) : 0;
  lock.unlock();
  return wait_s > 0 ? over("the team's time", "tenant_device_share", bound, wait_s) : Status();
}

void Tenant::note_compiled(double seconds, Clock::time_point now) {
  count(meter_->compile_ns, static_cast<std::uint64_t>(seconds * 1e9));
  const std::lock_guard lock(mutex_);
  compile_s_ += seconds;
  if (policy_.compile_seconds > 0) compiling_.use(seconds, policy_.compile_seconds / averaged_s, now);
}

void Tenant::note_computed(double seconds, Clock::time_point now) {
  count(meter_->device_ns, static_cast<std::uint64_t>(seconds * 1e9));
  device_s_.fetch_add(seconds, relaxed);
  if (!bounds_computing_.load(relaxed)) return;
  const std::lock_guard lock(mutex_);
  const double share = policy_.device_share;
  if (share <= 0) return;
  computing_.use(seconds, share, now, longest_device_debt_s);
  const std::chrono::duration<double> over(computing_.wait(share, now));
  behind_until_.store(now + std::chrono::duration_cast<Clock::duration>(over), relaxed);
}

void Tenant::note_wait(double seconds) {
  wait_s_.fetch_add(seconds, relaxed);
  double longest = longest_wait_s_.load(relaxed);
  while (seconds > longest && !longest_wait_s_.compare_exchange_weak(longest, seconds, relaxed)) {
  }
}

TenantReport Tenant::report() const {
  TenantReport report;
  report.name = name_;
  for (std::size_t i = 0; i < held_kinds; ++i) report.held[i] = held_[i].load(relaxed);
  report.jobs_ended = ended_.load(relaxed);
  report.refused = refused_.load(relaxed);
  const std::lock_guard lock(mutex_);
  report.weight = policy_.weight;
  report.priority = policy_.priority;
  report.device_s = device_s_.load(relaxed);
  report.compile_s = compile_s_;
  report.queue_wait_s = wait_s_.load(relaxed);
  report.longest_queue_wait_s = longest_wait_s_.load(relaxed);
  return report;
}

Tenants::Tenants() : rules_{tenant_name_of, [](const std::string&) { return TenantPolicy(); }} {}

// Sessions of nobody in particular are principals of their own, so that none reaches another's; but who opens
// many of them is still one.
std::string tenant_name_of(const Principal& principal) {
  return principal.identity == Identity::anonymous ? "anonymous" : principal.text();
}

void Tenants::set_rules(Rules rules) {
  const std::lock_guard lock(mutex_);
  rules_ = std::move(rules);
  for (const auto& [name, tenant] : by_name_) tenant->set_policy(rules_.policy_of(name));
}

std::shared_ptr<Tenant> Tenants::of(const Principal& principal) {
  const std::lock_guard lock(mutex_);
  const std::string name = rules_.tenant_of(principal);
  const auto known = by_name_.find(name);
  if (known != by_name_.end()) return known->second;
  if (by_name_.size() >= most_idle) forget_idle();
  return by_name_.emplace(name, std::make_shared<Tenant>(name, rules_.policy_of(name), meters_.of(name)))
      .first->second;
}

// Nobody else has a reference, so nobody can get one meanwhile: they are handed out under the lock.
void Tenants::forget_idle() {
  std::erase_if(by_name_, [](const auto& entry) { return entry.second.use_count() == 1; });
}

std::vector<TenantReport> Tenants::reports() const {
  std::vector<std::shared_ptr<Tenant>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, tenant] : by_name_) all.push_back(tenant);
  }
  std::vector<TenantReport> reports;
  reports.reserve(all.size());
  for (const auto& tenant : all) reports.push_back(tenant->report());
  return reports;
}

}  // namespace eagle::server
