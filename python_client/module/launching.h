// What a launch needs while Python waits for it: Ctrl-C, the closing of its session, a cancel from elsewhere,
// and the callables that it runs.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "eagle/client/graph.h"
#include "errors.h"
#include "gil.h"
#include "interruptible.h"
#include "nodes.h"

namespace eagle::python {

inline Status stopped_in_last_node(const Session& session, const std::string& method) {
  if (session.closed())
    return {Reason::session_closed, method + ": " + session.name() + " is closed; open another session"};
  return {Reason::cancelled,
          method + ": the launch was cancelled; its last node may have been left part way"};
}

inline Status status_of(const Status& status) { return status; }
inline Status status_of(const StatusOr<LaunchReport>& report) { return report.status(); }

// What stops a launch from outside, before it began as well as after.
struct CancelFlag {
  std::shared_ptr<std::atomic<bool>> flag = std::make_shared<std::atomic<bool>>(false);
};

inline std::optional<std::chrono::milliseconds> timeout_of(double seconds) {
  if (seconds == 0) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
}

// Ctrl-C of a call that waits for a daemon. One that does not sleep is over before anybody could tell that it
// was not stopped; the watch begins with the first sleep, and what came before is looked for soon after.
class WaitingCall {
public:
  WaitingCall(InterruptWatch& interrupts, Released& released, std::atomic<bool>& cancel,
              std::optional<nb::python_error>& raised)
      : interrupts_(interrupts), released_(released), cancel_(cancel), raised_(raised) {}

  void wait() {
    if (!interrupts_.wanted() || looked_) return;
    if (!interrupts_.begun()) return interrupts_.begin();
    looked_ = true;
    heed_signals(released_, cancel_, raised_);
  }

private:
  InterruptWatch& interrupts_;
  Released& released_;
  std::atomic<bool>& cancel_;
  std::optional<nb::python_error>& raised_;  // what a handler raised
  bool looked_ = false;
};

// What `run` gives with the options of a call that Ctrl-C, the closing of the session and the end of the
// interpreter stop; host nodes run in this thread meanwhile. `timeout`: seconds; 0: none. `computes_long`: as
// of a Graph.
template <typename Run>
auto with_calls(const Session& session, const char* method, const nb::dict& calls, double timeout,
                const CancelFlag& cancel, bool computes_long, const Run& run) {
  const RunningCall running(session, cancel.flag);
  std::optional<nb::python_error> raised;
  auto result = [&] {
    InterruptWatch interrupts(*running.cancel());
    if (computes_long) interrupts.begin();
    InterruptWatch::check();
    Released released;
    const HostCalls frame(calls, released, interrupts);
    WaitingCall waiting(interrupts, released, *running.cancel(), raised);
    return run(LaunchOptions{timeout_of(timeout), running.cancel(), [&waiting] { waiting.wait(); }});
  }();
  if (raised) throw *std::move(raised);
  const bool stopped = running.cancel()->load() || session.closed();
  if (stopped || !status_of(result).ok()) running.raise_stop();
  // A kernel that loops leaves when it is stopped, and as the last node it may have left part way.
  if (stopped && status_of(result).ok()) throw StatusError(stopped_in_last_node(session, method));
  return result;
}

}  // namespace eagle::python
