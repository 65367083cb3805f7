// TeamPlace: keeps the threads of a team on processors of their own.
//
// A thread that is woken is often put where its waker runs, though another processor idles: on small
// machines the system does not look for one, and it moves nobody within the milliseconds that a launch takes.
// Two threads then compute one after the other (docs/design/performance.md). So each thread but the first
// leaves the first one's processor out of its affinity, and those that others of the team have for their own.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include "engine/base/ticks.h"

namespace eagle::run {

// Where and when the first thread handed out work. Filled in on that thread.
struct TeamCall {
  static TeamCall here();
  int processor;  // -1: unknown
  pid_t thread;
  Ticks begun;
};

// The processors for thread `thread` (1, 2, ...) of `threads`, whose first one is on `first`: one for itself,
// and all that are nobody's. Empty where `allowed` has fewer than the team or not `first`.
cpu_set_t place_in_team(const cpu_set_t& allowed, int first, int thread, int threads);

// Of one thread, which it moves. Does nothing where the user has bound threads (OMP_PROC_BIND,
// GOMP_CPU_AFFINITY), or said that they are not to be.
class TeamPlace {
public:
  // Before this thread, not the first, does its part of `call`. A system call where the first one has moved,
  // at most every few milliseconds. Where this thread comes late to its own processor again and again, because
  // others compute there, it may run anywhere for a while, which is longer each time.
  void take(const TeamCall& call, int thread, int threads);

private:
  void leave();

  int first_ = -1;  // this thread has the place that goes with these; -1: it has none
  int thread_ = 0;
  int threads_ = 0;
  cpu_set_t before_;  // its processors before it had a place
  int late_ = 0;  // so many times in a row
  Ticks not_before_ = 0;
  Ticks pause_ = 0;
};

}  // namespace eagle::run
