// What launching through shared memory costs without eagle: a bare ring between two processes.
//
// A child process serves `slots` slots of shared memory with one thread, as a daemon's executor does: it goes
// through all of them, does the work of those that were posted, and wakes the client of a slot that sleeps.
// There is no session, no check of what was posted, no graph, no report, no fairness and nobody who may die:
// a limit, not something that could be used. It is fair because the work, the hand-over (a word in shared
// memory, a futex for who sleeps) and the number of threads are those of a launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace eagle::bench {

class RingTwin {
public:
  static constexpr std::size_t slots = 64;
  // Forks: call it before any thread is made. `work` runs in the child, once for each call.
  explicit RingTwin(const std::function<void()>& work);
  RingTwin(const RingTwin&) = delete;
  RingTwin& operator=(const RingTwin&) = delete;
  ~RingTwin();

  // Has the work done and returns then. One caller a slot. Looks for the answer `spin_ns` long before it
  // sleeps: spinning is quicker while the caller has a core to itself, sleeping where many callers share it.
  void call(std::size_t slot, std::int64_t spin_ns);
  // How often the child has worked.
  [[nodiscard]] std::uint64_t calls() const;

private:
  struct Shared;
  static void serve(Shared& shared, const std::function<void()>& work);
  Shared* shared_;
  int child_;
};

}  // namespace eagle::bench
