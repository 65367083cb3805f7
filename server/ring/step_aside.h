// StepAside: keeps the executor's thread off the processor where the client that it works for waits.
//
// The two take turns within microseconds, and each wakes the other. Where the system puts both on one
// processor, a launch takes two switches of threads (11 us for 1.7, docs/design/performance.md), waiting
// without sleeping is in vain, and nothing moves them apart for milliseconds: neither is ever in line for
// long. So the executor moves, by leaving that processor out of its affinity for a moment.
#pragma once

#include <functional>

#include "engine/base/ticks.h"

namespace eagle::server {

// Of one thread, which it moves.
class StepAside {
public:
  // `processor`: where the client was when it posted what was just taken, as it says itself (a number from
  // sched_getcpu, or anything else); `clients`: that launch at this time. Moves the thread if it is there,
  // may be elsewhere, and there are more processors than clients; not again for a while, which is longer
  // where the last move met a processor that others were using. Its affinity is as before afterwards.
  // `moving`: called with true before it moves, and with false afterwards. Whether it moved.
  bool from(int processor, int clients, const std::function<void(bool)>& moving);

private:
  Ticks not_before_ = 0;
  Ticks pause_ = 0;
};

}  // namespace eagle::server
