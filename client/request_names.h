// What tells one request from all others, so that a daemon knows it again when it is sent twice.
#pragma once

#include <sys/random.h>

#include <cstdint>
#include <ctime>
#include <string>

#include "engine/base/status.h"

namespace eagle {

// SYSTEM.
inline StatusOr<std::string> random_bytes() {
  std::string bytes(16, '\0');
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return Status(Reason::system, "getrandom failed");
  }
  return bytes;
}

// Of the calendar's clock: to tell before from after, also in other processes, and not to wait by.
inline std::uint64_t unix_microseconds() {
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000;
}

}  // namespace eagle
