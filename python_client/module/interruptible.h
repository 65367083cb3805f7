// A long call of the client library that Ctrl-C can end.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <future>
#include <utility>

namespace eagle::python {

// Runs `call` with the GIL released. Python runs signal handlers in the main thread only; where the caller is
// that one, `call` runs in a thread of its own while this one looks for signals. A handler that raises
// (KeyboardInterrupt) sets `cancel`, waits for `call` to end, and the exception goes on to the caller.
template <typename Call>
auto interruptible(std::atomic<bool>& cancel, const Call& call) -> decltype(call()) {
  namespace nb = nanobind;
  const nb::object threading = nb::module_::import_("threading");
  if (!threading.attr("current_thread")().is(threading.attr("main_thread")())) {
    const nb::gil_scoped_release released;
    return call();
  }
  auto running = std::async(std::launch::async, call);
  for (;;) {
    {
      const nb::gil_scoped_release released;
      // Wakes the moment the call ends; the bound is how long Ctrl-C may take to be seen.
      if (running.wait_for(std::chrono::milliseconds(20)) == std::future_status::ready) return running.get();
    }
    if (PyErr_CheckSignals() != 0) {
      nb::python_error raised;
      cancel.store(true);
      {
        const nb::gil_scoped_release released;
        running.wait();
      }
      throw raised;
    }
  }
}

}  // namespace eagle::python
