// LaunchJob: one `launch(n)` on its way through the executor.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/base/status.h"
#include "engine/run/built_graph.h"
#include "engine/run/control.h"
#include "server/executor.h"
#include "server/launch_outcomes.h"
#include "server/session.h"
#include "server/shared_function.h"

namespace eagle::server {

// How a launch speaks to whoever asked for it. Neither may block.
struct LaunchEvents {
  // Host node `call` is next: run it and `answer` with the sequence number. Empty: the caller cannot.
  SharedFunction<void(std::uint64_t sequence, std::uint32_t call)> host_call;
  // Somebody will ask for the outcome by the launch's id, so it is kept even if the launch never began.
  bool asked_for_later = false;
  bool enqueued = false;  // its place is in the order of what was enqueued
  // How the launch ended; called exactly once, whatever happens, last.
  LaunchOutcomes::Receiver done;
};

class LaunchJob final : public Job, public std::enable_shared_from_this<LaunchJob> {
  struct Token {};

public:
  // `start` makes them.
  LaunchJob(Token token, Executor& executor, std::shared_ptr<Session> session, const LaunchRequest& request);

  // Checks and queues a launch. Null when there is nothing to answer or cancel: `events.done` was called
  // with a refusal, or was or will be called with the outcome of the first launch of that id.
  static std::shared_ptr<LaunchJob> start(Executor& executor, const std::shared_ptr<Session>& session,
                                          const LaunchRequest& request,
                                          std::optional<std::chrono::steady_clock::time_point> deadline,
                                          LaunchEvents events);

  Next advance() override;
  void cancel() override;
  void stop(const Status& why) override;
  // The client ran its callable, or says why not. BAD_MESSAGE when no such call is open, unless the launch
  // has been cancelled: the reply was on its way then, and is of no use. `cancel`: it wants the launch to
  // end, this node being done.
  Status answer(std::uint64_t sequence, Status result, bool cancel = false);

private:
  // Is one of the session's jobs from now on, and has the graph: nobody else launches that until
  // `end_launch`.
  Status enter(bool can_call_host);
  [[nodiscard]] Status stop_status() const;  // ok while it may go on
  [[nodiscard]] LaunchReport report() const;
  // The last that is heard of it. `ran`: something of it was executed.
  static void tell(Session& session, const LaunchRequest& request, const LaunchEvents& events,
                   const LaunchOutcome& outcome, bool ran);
  Next ask();
  Next finish(LaunchOutcome outcome);

  Executor& executor_;
  const LaunchRequest request_;
  TraceContext trace_;
  run::Control control_;  // before the replay, which looks at it

  // Of the thread that advances it, once queued.
  std::shared_ptr<Session> session_;
  std::shared_ptr<LoadedGraph> graph_;
  LaunchEvents events_;
  std::optional<run::Replay> replay_;
  std::optional<std::chrono::steady_clock::time_point> began_;
  bool has_asked_ = false;  // its client to run a callable

  mutable std::mutex mutex_;
  bool parked_ = false;         // a host call is open
  bool unanswered_ = false;     // it was, when the launch was cancelled
  std::uint64_t sequence_ = 0;  // of the last host call
  Status host_failure_;
  Status stopped_;  // why the daemon stopped it; ok: it did not
};

}  // namespace eagle::server
