#include "engine/run/cuda/device_wait.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace eagle::run::cuda {
namespace {

// Between two looks whether a stream is done.
constexpr std::chrono::microseconds shortest_look{20};
constexpr std::chrono::microseconds longest_look{1'000};

}  // namespace

StatusOr<bool> wait_or_stop(const DeviceStream& stream, const Control* control,
                            const std::function<Status()>& tell) {
  bool told = false;
  if (control == nullptr) {
    EAGLE_RETURN_IF_ERROR(stream.wait());
    return told;
  }
  for (std::chrono::microseconds pause = shortest_look;; pause = std::min(2 * pause, longest_look)) {
    EAGLE_ASSIGN_OR_RETURN(const bool done, stream.done());
    if (done) return told;
    // Again each time: what is enqueued may clear the word before its first loop looks at it.
    if (control->cancelled() || control->expired()) {
      EAGLE_RETURN_IF_ERROR(tell());
      told = true;
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace eagle::run::cuda
