// Calls of the client library that may take long, and what ends them early: Ctrl-C, the closing of their
// session, the end of the interpreter.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "eagle/client/session.h"
#include "gil.h"

namespace eagle::python {

namespace nb = nanobind;

// Whether Python runs its signal handlers in this thread.
bool in_main_thread();

// One launch or run, from before the GIL is given up until after it is taken again. Raises SystemExit where
// the interpreter is ending.
class RunningCall {
public:
  // `cancel`: what stops it; it may be set already, by who changed their mind before the call began.
  explicit RunningCall(const Session& session, std::shared_ptr<std::atomic<bool>> cancel =
                                                   std::make_shared<std::atomic<bool>>(false));
  ~RunningCall();
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;

  [[nodiscard]] const std::shared_ptr<std::atomic<bool>>& cancel() const { return cancel_; }
  // Raises what stopped the call from outside, if anything did: SystemExit, or what a signal's handler
  // raises.
  void raise_stop() const;

  // Stops the calls of a session; kernels that loop look at their caller's flag only.
  static void stop_calls_of(const Session& session);

private:
  const Host* host_;
  const std::shared_ptr<std::atomic<bool>> cancel_;
};

// Ctrl-C while this thread runs a call in place: sets `cancel` and then does what it always does. Only in the
// main thread, and only where SIGINT has a handler.
//
// A handler of ours stays before Python's own between the calls, and counts, so that a call that is short
// makes no system call for it: only one that may last begins to watch, and then heeds what came since it was
// made. Where the program has given SIGINT another handler meanwhile, the watch begins at once.
//
// Made with the GIL; the rest with or without it, by one thread; `check` needs it.
class InterruptWatch {
public:
  explicit InterruptWatch(std::atomic<bool>& cancel);
  ~InterruptWatch() { pause(); }
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  // For a call that may last. Again: nothing.
  void begin();
  [[nodiscard]] bool wanted() const { return wanted_; }
  [[nodiscard]] bool begun() const { return begun_; }

  // Around Python code that the call runs: that is interrupted by Python itself.
  void pause();
  void resume();
  // Runs the handlers of signals that came before the watch was made; raises what they raise.
  static void check();

private:
  void watch();
  void heed();

  std::atomic<bool>& cancel_;
  const bool wanted_;
  std::uint64_t seen_;  // interrupts that are none of this call's
  bool begun_ = false;
  bool watching_ = false;
};

// For the main thread, with the GIL: begins `call` in another thread, which is kept from one call to the
// next, because to start one, and a team of its own below it, takes longer than many a run. Where that is at
// a call that a handler of a signal came between, in a fresh one. What `call` refers to is there until it has
// ended.
std::future<void> begin_beside(std::function<void()> call);

// Runs the handlers of signals that came. What one raises is kept in `raised`, once, and sets `cancel`. For
// the main thread.
void heed_signals(Released& released, std::atomic<bool>& cancel, std::optional<nb::python_error>& raised);

// Runs `call` with the GIL released. In the main thread `call` runs in another one while this one looks for
// signals, so that handlers of all signals run meanwhile. One that raises (KeyboardInterrupt) sets `cancel`,
// waits for `call` to end, and the exception goes on to the caller.
template <typename Call>
auto interruptible(std::atomic<bool>& cancel, const Call& call) -> decltype(call()) {
  if (!in_main_thread()) {
    const Released released;
    return call();
  }
  std::optional<decltype(call())> result;
  std::future<void> running = begin_beside([&] { result.emplace(call()); });
  for (;;) {
    {
      const Released released;
      // Wakes the moment the call ends; the bound is how long Ctrl-C may take to be seen.
      if (running.wait_for(std::chrono::milliseconds(4)) == std::future_status::ready) break;
    }
    if (PyErr_CheckSignals() != 0) {
      nb::python_error raised;
      cancel.store(true);
      {
        const Released released;
        running.wait();
      }
      throw raised;
    }
  }
  running.get();
  return *std::move(result);
}

// Registers with the interpreter: its end stops every call that still runs.
void bind_interrupts();

}  // namespace eagle::python
