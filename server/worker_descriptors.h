// The descriptors that a keeper starts its worker with, besides the standard ones.
#pragma once

namespace eagle::server {

constexpr int worker_fd = 3;         // the worker's end of the socket to its keeper
constexpr int worker_config_fd = 4;  // the text of the configuration file that holds (handed_text.h)
constexpr int worker_log_fd = 5;     // the memory of the newest log lines (recent_log.h)

}  // namespace eagle::server
