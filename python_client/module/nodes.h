// Node: what a graph can hold, as Python passes it from where it is made to where it is added.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "eagle/client/graph.h"
#include "gil.h"
#include "interruptible.h"

namespace eagle::python {

struct Node {
  NodeKind kind;
};

// Policies for dispatch groups by their names, as Python gives them. `where` begins the text of a refusal.
std::vector<kernel::PolicyChoice> policy_choices(
    const std::string& where, const std::vector<std::pair<std::string, std::string>>& named);

// The callables of the graph that this thread is launching, by number (a Python dict), while it launches:
// host nodes hold a number and no Python object, so that a graph whose callables refer to it can be
// collected.
class HostCalls {
public:
  HostCalls(nanobind::handle calls, Released& released, InterruptWatch& interrupts)
      : calls_(calls), released_(released), interrupts_(interrupts), outer_(current_) {
    current_ = this;
  }
  ~HostCalls() { current_ = outer_; }
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  // Calls number `number` with the GIL taken; what it raises is thrown as nanobind::python_error.
  static Status run(std::int64_t number);
  // The same; whether what it returns is true.
  static bool ask(std::int64_t number);
  // What number `number` is on a GPU (eagle/_gpu_calls.py): enqueues on a stream that is captured, says which
  // CUDA graph its owner has now (0: none), and hears that a launch is over.
  static Status capture(std::int64_t number, std::uint64_t stream);
  static std::uint64_t graph(std::int64_t number);
  static void over(std::int64_t number);
  // Runs `code` with the GIL taken, within a launch or run of this thread.
  template <typename Code>
  static auto in_python(const Code& code) {
    HostCalls& frame = *current_;
    frame.interrupts_.pause();
    const Released::Interval gil(frame.released_);
    const auto result = code(frame.calls_);
    frame.interrupts_.resume();
    InterruptWatch::check();
    return result;
  }

private:
  static thread_local HostCalls* current_;
  nanobind::handle calls_;
  Released& released_;          // the GIL
  InterruptWatch& interrupts_;  // Ctrl-C
  HostCalls* outer_;            // of the launch that this one is called from
};

}  // namespace eagle::python
