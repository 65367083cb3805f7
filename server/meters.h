// Meters: what the daemon counts for its operators, as plain relaxed atomics. Readers see each number as it
// is; two of them may be from before and after one event.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "engine/base/reason.h"

namespace eagle::server {

using Counter = std::atomic<std::uint64_t>;
inline void count(Counter& counter, std::uint64_t more = 1) {
  counter.fetch_add(more, std::memory_order_relaxed);
}

// Durations, by the decade and its thirds: 1 us to 1,000 s.
class Durations {
public:
  // Upper bounds, in seconds; one more bucket has no bound.
  static constexpr std::array<double, 20> bounds = {1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4,
                                                    2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 5e-2,
                                                    1e-1, 5e-1, 1,    10,   100,  1000};
  void observe(double seconds);
  // By bucket, not cumulative; the last is above all bounds.
  [[nodiscard]] std::array<std::uint64_t, bounds.size() + 1> counts() const;
  [[nodiscard]] double sum_s() const {
    return static_cast<double>(sum_ns_.load(std::memory_order_relaxed)) * 1e-9;
  }

private:
  std::array<Counter, bounds.size() + 1> counts_ = {};
  Counter sum_ns_ = 0;
};

constexpr std::size_t code_count = 17;
// With Reason::none.
#define EAGLE_COUNT_REASON(...) +1
constexpr std::size_t reason_count = 1 EAGLE_REASONS(EAGLE_COUNT_REASON);
#undef EAGLE_COUNT_REASON

// What a tenant's work came to.
struct TenantMeter {
  std::array<Counter, code_count> launches = {};  // by Code
  std::array<Counter, code_count> runs = {};
  Counter device_ns = 0;
  Counter compile_ns = 0;
  Counter refused = 0;  // over its quotas
};

// The meters of tenants, by the label that they have outside: the name, of the first `most` tenants there
// were; the others share "other", and sessions without a principal "anonymous". Labels are never forgotten,
// so that what they count never goes down. Thread-safe.
class TenantMeters {
public:
  static constexpr std::size_t most = 64;
  // For the tenant of this name.
  std::shared_ptr<TenantMeter> of(const std::string& tenant);
  // Under which of the labels it is shown.
  [[nodiscard]] std::string label_of(const std::string& tenant) const;
  [[nodiscard]] std::map<std::string, std::shared_ptr<const TenantMeter>> all() const;

private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<TenantMeter>> by_label_;
};

// Of the whole daemon.
struct Meters {
  Durations launch_duration;  // from the first turn to the end
  Durations run_duration;
  Durations queue_wait;  // from admission to the first turn
  Durations build_duration;
  Counter host_calls = 0;
  Counter ring_launches = 0;
  Counter drain_cancelled = 0;
  Counter gpu_faults = 0;
  // Calls and side requests that were answered with an error, by Reason.
  std::array<Counter, reason_count> refusals = {};
  // Of those who wanted a session, or showed the secret of none.
  Counter authentications_accepted = 0;
  Counter authentications_refused = 0;
};

}  // namespace eagle::server
