#include "server/ring/step_aside.h"

#include <sched.h>

#include <algorithm>

namespace eagle::server {
namespace {

// A move takes ten to a hundred microseconds where the other processor is idle, and a time slice where it is
// not.
constexpr double longest_move_s = 1e-3;
constexpr double shortest_pause_s = 2e-3;
constexpr double longest_pause_s = 50e-3;

}  // namespace

bool StepAside::from(int processor, int clients, const std::function<void(bool)>& moving) {
  if (processor < 0 || processor >= CPU_SETSIZE || processor != ::sched_getcpu()) return false;
  const Ticks begun = ticks_now();
  if (begun < not_before_) return false;
  not_before_ = begun + ticks_of(shortest_pause_s);
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) <= clients) return false;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<unsigned>(processor), &others);
  if (CPU_COUNT(&others) == 0) return false;
  moving(true);
  const bool moved = ::sched_setaffinity(0, sizeof others, &others) == 0;
  if (moved) static_cast<void>(::sched_setaffinity(0, sizeof allowed, &allowed));
  moving(false);
  if (!moved) return false;
  const Ticks ended = ticks_now();
  const bool was_idle = ended - begun < ticks_of(longest_move_s);
  pause_ = std::clamp(was_idle ? 0 : 2 * pause_, ticks_of(shortest_pause_s), ticks_of(longest_pause_s));
  not_before_ = ended + pause_;
  return true;
}

}  // namespace eagle::server
