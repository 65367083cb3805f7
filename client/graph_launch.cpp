// Running a graph: launch, enqueue and synchronize, launch_async, cancel.
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "client/counters.h"
#include "client/graph_state.h"
#include "client/recording.h"

namespace eagle {

Status Graph::State::check_launch(std::string_view method, std::int64_t n) const {
  if (built && n >= 0) return {};
  const std::string where(method);
  if (!built) return {Reason::graph_state, where + ": this graph is not built; call build() first"};
  return {Reason::bad_value,
          where + ": n is " + std::to_string(n) + "; give the number of replays, at least 0"};
}

// Calls `run`, which waits for the launch. What the caller's own code had to say comes back as it was,
// whatever the host made of it on the way.
Status Graph::State::finish(
    std::string_view method, const LaunchOptions& launch_options, CallbackThread* callbacks,
    const std::function<StatusOr<LaunchReport>(const LaunchOptions&, const HostCall&)>& run,
    LaunchReport* told) {
  // One name for all that the calls need: a function that holds no more than that allocates nothing.
  struct Calls {
    const Backing& backing;
    CallbackThread* callbacks;
    Status failure = {};
    std::exception_ptr thrown = {};

    Status run_in_place(std::uint32_t call) {
      if (call >= backing.calls.size()) {
        return {Reason::internal, "there is no host call " + std::to_string(call) + " in this graph"};
      }
      try {
        failure = backing.calls[call]();
        return failure;
      } catch (...) {
        thrown = std::current_exception();
        return {Reason::host_call_failed, "the callable threw an exception"};
      }
    }
    Status run(std::uint32_t call) {
      if (callbacks == nullptr) return run_in_place(call);
      Status outcome;
      callbacks->run([&] { outcome = run_in_place(call); });
      return outcome;
    }
  } calls{backing, callbacks};
  const HostCall host_call = [&calls](std::uint32_t call) { return calls.run(call); };
  std::optional<LaunchOptions> own;
  if (!launch_options.cancel) {
    own = launch_options;
    own->cancel = std::make_shared<std::atomic<bool>>(false);
  }
  const LaunchOptions& with_flag = own ? *own : launch_options;
  {
    const std::scoped_lock lock(mutex);
    running = with_flag.cancel;
  }
  // Also where the caller's code throws outside of its calls (gpu_work.h).
  struct Leave {
    State& state;
    const Calls& calls;
    LaunchReport* told;
    std::optional<StatusOr<LaunchReport>> report = {};

    [[nodiscard]] bool whole() const { return report && report->ok() && !calls.thrown && calls.failure.ok(); }
    ~Leave() {
      state.end_recording(report && report->ok() ? &**report : nullptr);
      const std::scoped_lock lock(state.mutex);
      state.running = nullptr;
      if (!whole()) return;
      state.last = **std::move(report);
      if (told != nullptr) *told = state.last;
    }
  } leave{*this, calls, told};
  leave.report.emplace(run(with_flag, host_call));
  if (calls.thrown) std::rethrow_exception(calls.thrown);
  if (!calls.failure.ok()) return calls.failure;
  if (!leave.report->ok()) return within_call(leave.report->status(), method);
  counting::add(counting::of_process().launches, static_cast<std::uint64_t>((*leave.report)->launches));
  return {};
}

Status Graph::State::launch(std::string_view method, std::int64_t n, const LaunchOptions& launch_options,
                            CallbackThread* callbacks, LaunchReport* told) {
  const util::Busy::Guard guard(busy);
  if (!guard.entered()) return eagle::busy(method);
  EAGLE_RETURN_IF_ERROR(check_launch(method, n));
  EAGLE_RETURN_IF_ERROR(begin_recording(n).within(method));
  return finish(
      method, launch_options, callbacks,
      [&](const LaunchOptions& with_flag, const HostCall& host_call) {
        return built->launch(n, with_flag, host_call);
      },
      told);
}

Status Graph::State::begin_recording(std::int64_t n) const {
  if (!recording) return {};
  if (!recording->in_use.enter())
    return {Reason::busy, "a reverse pass is going back over the last launch; wait for it"};
  recording->begin(n);
  return {};
}

void Graph::State::end_recording(const LaunchReport* report) const {
  if (!recording) return;
  if (report != nullptr) recording->finish(report->iterations);
  recording->in_use.leave();
}

Status Graph::State::enqueue(std::int64_t n) {
  if (!busy.enter()) return eagle::busy("enqueue");
  Status queued = check_launch("enqueue", n);
  if (queued.ok()) queued = begin_recording(n).within("enqueue");
  if (queued.ok()) {
    queued = within_call(built->enqueue(n), "enqueue");
    if (!queued.ok()) end_recording(nullptr);
  }
  const std::scoped_lock lock(mutex);
  enqueued = queued.ok();
  if (!queued.ok()) busy.leave();
  return queued;
}

StatusOr<LaunchReport> Graph::State::synchronize(const LaunchOptions& given) {
  LaunchOptions launch_options = given;
  if (!launch_options.cancel) launch_options.cancel = std::make_shared<std::atomic<bool>>(false);
  {
    const std::scoped_lock lock(mutex);
    if (synchronizing) return eagle::busy("synchronize");
    if (!enqueued) return last;
    synchronizing = true;
    running = launch_options.cancel;  // a cancel finds the one or the other
  }
  // Also where a callable throws.
  struct Leave {
    State& state;
    ~Leave() {
      const std::scoped_lock lock(state.mutex);
      state.enqueued = false;
      state.synchronizing = false;
      state.busy.leave();
    }
  } const leave{*this};
  LaunchReport report;
  EAGLE_RETURN_IF_ERROR(finish(
      "synchronize", launch_options, nullptr,
      [&](const LaunchOptions& with_flag, const HostCall& host_call) {
        return built->synchronize(with_flag, host_call);
      },
      &report));
  return report;
}

StatusOr<LaunchReport> Graph::launch(std::int64_t n, const LaunchOptions& options) {
  LaunchReport report;
  EAGLE_RETURN_IF_ERROR(state_->launch("launch", n, options, nullptr, &report));
  return report;
}

Status Graph::replay(std::int64_t n, const LaunchOptions& options) {
  return state_->launch("launch", n, options, nullptr, nullptr);
}

LaunchReport Graph::report() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->last;
}

bool Graph::computes_long(std::int64_t n) const {
  return n > state_->brief_replays.load(std::memory_order_relaxed);
}

Status Graph::enqueue(std::int64_t n, const LaunchOptions& options) {
  bool enqueues = false;
  {
    const std::scoped_lock lock(state_->mutex);
    enqueues = state_->built != nullptr && state_->built->enqueues();
  }
  return enqueues ? state_->enqueue(n) : state_->launch("enqueue", n, options, nullptr, nullptr);
}

StatusOr<LaunchReport> Graph::synchronize(const LaunchOptions& options) {
  return state_->synchronize(options);
}

Future<LaunchReport> Graph::launch_async(std::int64_t n, const LaunchOptions& options) {
  // A callable may wait for a launch that it starts, and holds the thread meanwhile: that launch's own
  // callables run in that launch's thread, which then counts as the session's.
  const bool nested = state_->session.host()->callbacks().is_this_thread();
  return Future<LaunchReport>(
      [state = state_, n, options, nested](const auto& cancelled) -> StatusOr<LaunchReport> {
        LaunchOptions with_flag = options;
        with_flag.cancel = cancelled;
        CallbackThread& callbacks = state->session.host()->callbacks();
        std::optional<CallbackThread::Deputy> deputy;
        if (nested) deputy.emplace(callbacks);
        LaunchReport report;
        EAGLE_RETURN_IF_ERROR(state->launch("launch_async", n, with_flag, &callbacks, &report));
        return report;
      });
}

void Graph::cancel() const {
  std::function<void()> tell;
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->running) state_->running->store(true);
    if (state_->enqueued && !state_->synchronizing) tell = state_->built->cancel_enqueued();
  }
  if (tell) tell();
}

}  // namespace eagle
