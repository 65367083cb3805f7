#include "engine/run/cpu/team_place.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace eagle::run {
namespace {

// An idle processor takes 30 to 100 us to wake up, one that somebody else uses a time slice. Any may be away
// for some milliseconds now and then, where the machine is virtual.
constexpr double late_s = 1e-3;
constexpr int too_often = 3;  // in a row
// A place costs a system call, and some 30 us where it moves the thread.
constexpr double between_moves_s = 2e-3;
constexpr double shortest_pause_s = 50e-3;
constexpr double longest_pause_s = 2;

bool may_place() {
  static const bool may = omp_get_proc_bind() == omp_proc_bind_false &&
                          std::getenv("OMP_PROC_BIND") == nullptr &&
                          std::getenv("GOMP_CPU_AFFINITY") == nullptr;
  return may;
}

pid_t this_thread() {
  static thread_local const pid_t id = ::gettid();
  return id;
}

}  // namespace

TeamCall TeamCall::here() { return {::sched_getcpu(), this_thread(), ticks_now()}; }

cpu_set_t place_in_team(const cpu_set_t& allowed, int first, int thread, int threads) {
  cpu_set_t place;
  CPU_ZERO(&place);
  if (first < 0 || first >= CPU_SETSIZE || !CPU_ISSET(static_cast<unsigned>(first), &allowed)) return place;
  if (CPU_COUNT(&allowed) < threads) return place;
  int owner = 0;
  for (int step = 0; step < CPU_SETSIZE; ++step) {
    const auto processor = static_cast<unsigned>((first + step) % CPU_SETSIZE);
    if (!CPU_ISSET(processor, &allowed)) continue;
    if (owner == thread || owner >= threads) CPU_SET(processor, &place);
    ++owner;
  }
  return place;
}

void TeamPlace::take(const TeamCall& call, int thread, int threads) {
  const bool in_place = first_ == call.processor && thread_ == thread && threads_ == threads;
  const Ticks now = ticks_now();
  late_ = in_place && first_ >= 0 && now > call.begun + ticks_of(late_s) ? late_ + 1 : 0;
  if (late_ >= too_often) {
    leave();
    pause_ = std::clamp(2 * pause_, ticks_of(shortest_pause_s), ticks_of(longest_pause_s));
    not_before_ = now + pause_;
    late_ = 0;
    return;
  }
  if (in_place || now < not_before_ || call.processor < 0 || !may_place()) return;
  not_before_ = now + ticks_of(between_moves_s);
  cpu_set_t allowed;
  if (::sched_getaffinity(call.thread, sizeof allowed, &allowed) != 0) return;
  const cpu_set_t place = place_in_team(allowed, call.processor, thread, threads);
  if (CPU_COUNT(&place) == 0) return leave();
  if (first_ < 0 && ::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  if (::sched_setaffinity(0, sizeof place, &place) != 0) return;
  first_ = call.processor;
  thread_ = thread;
  threads_ = threads;
}

void TeamPlace::leave() {
  if (first_ >= 0) static_cast<void>(::sched_setaffinity(0, sizeof before_, &before_));
  first_ = -1;
}

}  // namespace eagle::run
