// Surroundings: what the services need of the program around the daemon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace eagle::server {

// The functions are thread-safe and may be empty.
struct Surroundings {
  std::vector<std::string> listen;  // every endpoint of the daemon, for people
  // Ends the daemon, as SIGTERM does; work gets so long, or as configured.
  std::function<void(std::optional<std::uint32_t> within_s)> end = {};
  std::function<std::string()> configuration = {};  // as text, without secrets
  std::function<std::vector<std::string>(std::size_t most)> recent_log = {};
};

}  // namespace eagle::server
