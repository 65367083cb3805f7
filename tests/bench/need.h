// What the benchmark programs share: ending when something does not work, and the time of a thread.
#pragma once

#include <errno.h>  // program_invocation_short_name
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "engine/base/status.h"

namespace eagle::bench {

[[noreturn]] inline void die(const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message.c_str());
  std::exit(1);
}

template <typename T>
T need(StatusOr<T> result) {
  if (!result.ok()) die(result.status().to_string());
  return std::move(result).value();
}
inline void need(const Status& status) {
  if (!status.ok()) die(status.to_string());
}

// Processor time of the calling thread: what others do beside it does not count.
inline double processor_s() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace eagle::bench
