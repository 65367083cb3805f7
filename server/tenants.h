// Tenants: who shares the machine, and how much of it is whose.
//
// A principal belongs to a tenant; without configuration every user (uid) is one, of weight 1 and with the
// daemon's own bounds. Weight and priority decide about the team's time (fair_queue.h), quotas about the
// rest.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "server/fair_queue.h"
#include "server/limits.h"
#include "server/meters.h"
#include "server/principal.h"

namespace eagle::server {

class Job;

// What a tenant may hold at a time. A refusal names the key: "tenant_sessions", "tenant_plane_bytes" (whole
// pages of planes and scratch memory, and what is kept of graphs' descriptions, names and submitted runs),
// "tenant_graphs", "tenant_jobs" (launches and runs that wait, run or are at a host call), "tenant_planes"
// (its own, and those that it opened), "tenant_gpu_bytes" (what its planes take of the
// memory of GPUs, and what its graphs made there for themselves).
enum class Held : std::uint8_t { sessions, plane_bytes, graphs, jobs, planes, gpu_bytes };
constexpr std::size_t held_kinds = 6;

struct TenantPolicy {
  double weight = 1;  // above 0: shares of the team's time are as the weights
  int priority = 0;   // a higher one goes first, always
  // By Held; 0: no bound but the daemon's.
  std::array<std::uint64_t, held_kinds> quotas = {};
  // Seconds of compiling in a minute, and part of the team's time, both on average over a minute; 0: no
  // bound. Who is over it gets QUOTA (tenant_compile_seconds, tenant_device_share) until the average is down.
  // What such a tenant has running goes on where nobody else has work (Tenant::flow), which makes that time
  // no longer than `longest_device_debt_s`.
  double compile_seconds = 0;
  double device_share = 0;
};
constexpr double longest_device_debt_s = 60;

// Time that may be used at some rate, a minute's worth of it at once. Thread-compatible; the clock is the
// caller's.
class Allowance {
public:
  using Time = std::chrono::steady_clock::time_point;
  // `rate`: seconds that may be used in a second. `longest_wait_s`: what `wait` says at most.
  void use(double seconds, double rate, Time now,
           double longest_wait_s = std::numeric_limits<double>::infinity());
  // Seconds until something may be used again; 0: now.
  double wait(double rate, Time now);

private:
  void pay_back(double rate, Time now);
  double used_ = 0;  // and not yet paid back
  Time then_;
};

struct TenantReport {
  std::string name;
  double weight = 1;
  int priority = 0;
  std::array<std::uint64_t, held_kinds> held = {};
  std::uint64_t jobs_ended = 0;
  std::uint64_t refused = 0;  // for a quota
  double device_s = 0;        // of the team
  double compile_s = 0;
  double queue_wait_s = 0;  // of all jobs that have begun, from their admission
  double longest_queue_wait_s = 0;
};

// Thread-safe, but for `flow`.
class Tenant : public std::enable_shared_from_this<Tenant> {
public:
  using Clock = std::chrono::steady_clock;

  Tenant(std::string name, const TenantPolicy& policy,
         std::shared_ptr<TenantMeter> meter = std::make_shared<TenantMeter>());
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] TenantPolicy policy() const;
  // From the next decision on. What is held over a lower quota stays.
  void set_policy(const TenantPolicy& policy);

  // Something held, until this goes.
  class Share {
  public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      std::swap(tenant_, other.tenant_);
      std::swap(kind_, other.kind_);
      std::swap(amount_, other.amount_);
      return *this;
    }
    ~Share() {
      if (tenant_) tenant_->held_[static_cast<std::size_t>(kind_)].fetch_sub(amount_, relaxed);
    }
    // Becomes both. They are of one tenant and kind, or this one is empty.
    void add(Share more) {
      if (!tenant_) return std::swap(*this, more);
      amount_ += std::exchange(more.amount_, 0);
    }

  private:
    friend Tenant;
    std::shared_ptr<Tenant> tenant_;
    Held kind_ = Held::jobs;
    std::uint64_t amount_ = 0;
  };
  StatusOr<Share> hold(Held kind, std::uint64_t amount = 1);  // QUOTA

  // QUOTA while it has used more than its share.
  Status may_compile(Clock::time_point now = Clock::now());
  Status may_compute(Clock::time_point now = Clock::now());
  void note_compiled(double seconds, Clock::time_point now = Clock::now());
  // Where the tenant has no bound they take no lock: every launch comes by here.
  void note_computed(double seconds, Clock::time_point now = Clock::now());
  void note_wait(double seconds);
  void note_end() { ended_.fetch_add(1, relaxed); }

  [[nodiscard]] TenantReport report() const;
  [[nodiscard]] TenantMeter& meter() { return *meter_; }

  // The executor's, under its lock: one for each of its lanes. While the tenant is over its device_share
  // everybody else goes first.
  using Flow = FairQueue<std::shared_ptr<Job>>::Flow;
  [[nodiscard]] Flow& flow(std::size_t lane = 0);

private:
  static constexpr auto relaxed = std::memory_order_relaxed;
  Status over(const char* what, const char* key, double bound, double wait_s);

  const std::string name_;
  const std::shared_ptr<TenantMeter> meter_;
  std::array<std::atomic<std::uint64_t>, held_kinds> held_ = {};
  std::atomic<std::uint64_t> ended_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<double> weight_ = 1;  // for `flow`, without a lock
  std::atomic<int> priority_ = 0;
  std::atomic<Clock::time_point> behind_until_ = Clock::time_point::min();
  std::array<std::atomic<std::uint64_t>, held_kinds> quotas_ = {};
  std::atomic<bool> bounds_computing_ = false;  // whether there is a device_share
  std::atomic<double> device_s_ = 0;
  std::atomic<double> wait_s_ = 0;
  std::atomic<double> longest_wait_s_ = 0;
  Flow flow_;                          // of the first lane
  std::map<std::size_t, Flow> flows_;  // of GPUs

  mutable std::mutex mutex_;
  TenantPolicy policy_;
  Allowance compiling_;
  Allowance computing_;
  double compile_s_ = 0;
};

// A principal's tenant where no other rule says so: the principal as text; "anonymous" for all that are
// nobody in particular.
std::string tenant_name_of(const Principal& principal);

// Thread-safe.
class Tenants {
public:
  // The name of a principal's tenant, and the policy of a tenant by name.
  struct Rules {
    std::function<std::string(const Principal&)> tenant_of;
    std::function<TenantPolicy(const std::string&)> policy_of;
  };
  Tenants();
  // Of a configuration; those who are here already follow it from now on, and sessions stay with the tenant
  // that they were opened for.
  void set_rules(Rules rules);
  std::shared_ptr<Tenant> of(const Principal& principal);
  [[nodiscard]] std::vector<TenantReport> reports() const;  // by name
  [[nodiscard]] const TenantMeters& meters() const { return meters_; }

private:
  // More are forgotten, with their counts, once nobody of them is here.
  static constexpr std::size_t most_idle = 1024;
  void forget_idle();

  TenantMeters meters_;
  mutable std::mutex mutex_;
  Rules rules_;
  std::map<std::string, std::shared_ptr<Tenant>> by_name_;
};

}  // namespace eagle::server
