#include "engine/base/detached.h"

#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace eagle {

Status start_detached(std::function<void()> work) {
  try {
    std::thread(std::move(work)).detach();
    return {};
  } catch (const std::system_error& error) {
    return {Reason::system,
            std::string("no thread can be started (") + error.what() + "); raise pids.max or RLIMIT_NPROC"};
  }
}

}  // namespace eagle
