// LaunchOutcomes: what came of a session's launches, so that a launch sent again does not run again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/base/status.h"
#include "engine/run/host.h"
#include "engine/run/kernel_counts.h"
#include "server/limits.h"

namespace eagle::server {

struct LaunchReport {
  run::HostIdentity host;
  std::int64_t launches = 0;  // whole replays
  std::int64_t threads = 1;
  double wall_s = 0;
  std::vector<std::int64_t> iterations;
  run::KernelCounts counts;
};
using LaunchOutcome = StatusOr<LaunchReport>;

// What a launch id stands for. The same id with another request is a client's mistake.
struct LaunchRequest {
  std::uint64_t graph = 0;
  std::int64_t count = 0;
  std::uint64_t launch_id = 0;  // 0: none, never remembered
  friend bool operator==(const LaunchRequest&, const LaunchRequest&) = default;
};

// Thread-safe. Receivers are called once each, without a lock held.
class LaunchOutcomes {
public:
  using Receiver = std::function<void(const LaunchOutcome&)>;
  enum class Admission {
    first,  // run it, then `settle`: that calls `receiver`
    again,  // it has run or is running: `receiver` was or will be called with that outcome
  };

  explicit LaunchOutcomes(const Limits& limits) : limits_(limits) {}

  // BAD_VALUE for an id that stands for another launch; OUTCOME_FORGOTTEN for one so old that it may have
  // run: ids of a session increase.
  StatusOr<Admission> admit(const LaunchRequest& request, Receiver receiver);
  // `ran`: something of it was executed. What never started may be sent again and is not kept.
  void settle(std::uint64_t launch_id, const LaunchOutcome& outcome, bool ran);

  // Ids up to this one were launched by a worker that has died: what is not known of them is refused from now
  // on with WORKER_RESTARTED.
  void lost_through(std::uint64_t launch_id);

private:
  struct Entry {
    LaunchRequest request;
    std::vector<Receiver> receivers;       // while it runs
    std::optional<LaunchOutcome> outcome;  // afterwards
  };
  void forget_oldest();

  const Limits& limits_;
  std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t lost_through_ = 0;
  std::uint64_t forgotten_through_ = 0;  // every id up to this one that is not in `entries_`
  std::size_t settled_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace eagle::server
