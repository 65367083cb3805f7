// LaunchOutcomes: what came of a session's launches, so that a launch sent again does not run again.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/trace_context.h"
#include "engine/run/host.h"
#include "engine/run/kernel_counts.h"
#include "server/ledger.h"
#include "server/limits.h"
#include "server/shared_function.h"

namespace eagle::server {

struct LaunchReport {
  std::optional<run::HostIdentity> earlier_host;  // where an earlier worker ran it
  std::int64_t launches = 0;                      // whole replays
  std::int64_t threads = 1;
  double wall_s = 0;
  std::vector<std::int64_t> iterations;
  run::KernelCounts counts;

  // Asked for by few, and so not copied by every launch.
  [[nodiscard]] run::HostIdentity host() const { return earlier_host ? *earlier_host : run::this_host(); }
};
using LaunchOutcome = StatusOr<LaunchReport>;

// What a launch id stands for. The same id with another request is a client's mistake.
struct LaunchRequest {
  std::uint64_t graph = 0;
  std::int64_t count = 0;
  std::uint64_t launch_id = 0;  // 0: none, never remembered
  TraceContext trace = {};      // that it belongs to; where none is given, its session's
  // The trace is not part of what a launch is.
  friend bool operator==(const LaunchRequest& a, const LaunchRequest& b) {
    return a.graph == b.graph && a.count == b.count && a.launch_id == b.launch_id;
  }
};

// Thread-safe. Receivers are called once each, without a lock held.
class LaunchOutcomes {
public:
  using Receiver = SharedFunction<void(const LaunchOutcome&)>;
  enum class Admission {
    first,  // run it, then `settle`: that calls `receiver`
    again,  // it has run or is running: `receiver` was or will be called with that outcome
  };

  // `begun` outlives it.
  LaunchOutcomes(const Limits& limits, const Ledger::Begun& begun) : limits_(limits), begun_(begun) {}

  struct Manner {
    // Its place is in an order that is over: WORKER_RESTARTED for one of an earlier worker even if it has not
    // begun, because others may have been meanwhile that were enqueued after it.
    bool in_order = false;
    // The outcome is kept until it has been asked for, or as long as there are not too many such (outcomes);
    // of a launch that runs already the receiver hears nothing.
    bool asked_for_later = false;
  };
  // Ids of a session increase, by and large: one may arrive after larger ones, however many. BAD_VALUE for an
  // id that stands for another launch; OUTCOME_FORGOTTEN for one that ran so long ago, or may have; QUOTA
  // (launch_waiters); WORKER_RESTARTED: see `lost_through`.
  StatusOr<Admission> admit(const LaunchRequest& request, Receiver receiver) {
    return admit(request, std::move(receiver), Manner{});
  }
  StatusOr<Admission> admit(const LaunchRequest& request, Receiver receiver, Manner manner);
  // `ran`: something of it was executed. What never started may be sent again and is not kept.
  void settle(std::uint64_t launch_id, const LaunchOutcome& outcome, bool ran);

  // An OutcomesRecord (state.proto) of what was enqueued, has ended and was not asked for yet; empty where
  // there is nothing.
  std::string left_over();
  // As another worker had it. BAD_MESSAGE.
  Status restore(const std::string& record);

  // Ids up to this one may have been given to a worker that has died. Those that may have begun there are
  // refused from now on with WORKER_RESTARTED, unless their outcome is known.
  void lost_through(std::uint64_t launch_id);
  // Whether a launch or run of this id may run: WORKER_RESTARTED.
  Status check_lost(std::uint64_t launch_id);

private:
  struct Entry {
    LaunchRequest request;
    Receiver receiver = {};                     // of who sent it first, while it runs
    std::vector<Receiver> others = {};          // likewise
    std::optional<LaunchOutcome> outcome = {};  // afterwards
    bool awaited = false;                       // it is to be asked for
  };
  // Found in the same time however many are kept, as long as a client makes its ids as clients do; one that
  // does not waits for as many steps as outcomes are kept.
  using Entries = std::unordered_map<std::uint64_t, Entry>;
  using Known = Entries::value_type;  // stays where it is until it is forgotten
  // True where this id never began anything, which it may from now on.
  bool take_unused(std::uint64_t launch_id);
  void add_unused(std::uint64_t first, std::uint64_t last);
  [[nodiscard]] Known* find(std::uint64_t launch_id);  // null: it is not known
  Known& add(const LaunchRequest& request);            // of an id that is not known
  void keep(Known& settled);
  void forget(const Known& settled);
  [[nodiscard]] bool lost(std::uint64_t launch_id) const {
    return launch_id <= lost_through_ && begun_.may_have(launch_id);
  }

  const Limits& limits_;
  const Ledger::Begun& begun_;
  std::mutex mutex_;
  Entries entries_;
  Entries::node_type spare_;  // of an outcome that was forgotten: the next launch has it
  // Found without a search: the launch that was admitted last is mostly the one that is settled next.
  Known* last_added_ = nullptr;
  std::deque<Known*> settled_;       // with an outcome, in the order of their ends, without the awaited ones
  std::set<std::uint64_t> awaited_;  // with an outcome that nobody has asked for yet
  std::size_t bytes_ = 0;            // of all outcomes
  std::uint64_t lost_through_ = 0;
  std::uint64_t highest_ = 0;  // of all ids so far
  // Ranges, first to last, of ids up to `highest_` that never began anything: another thread of the client is
  // on its way with them, or they were refused. What is in neither of these has run and is forgotten.
  std::map<std::uint64_t, std::uint64_t> unused_;
};

}  // namespace eagle::server
