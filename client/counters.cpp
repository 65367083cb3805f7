#include "client/counters.h"

#include "eagle/client/counters.h"

namespace eagle {

counting::Atomics& counting::of_process() {
  static Atomics atomics;
  return atomics;
}

Counters counters() {
  const counting::Atomics& now = counting::of_process();
  const auto value = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  Counters counters;
  counters.graph_builds = value(now.graph_builds);
  counters.binds = value(now.binds);
  counters.rebinds = value(now.rebinds);
  counters.updates = value(now.updates);
  counters.launches = value(now.launches);
  counters.runs = value(now.runs);
  counters.compiles = value(now.compiles);
  return counters;
}

}  // namespace eagle
