// The descriptors that a keeper starts its worker with, besides the standard ones.
#pragma once

namespace eagle::server {

// Where a process that was started with descriptors finds the first of them.
constexpr int first_descriptor = 3;

constexpr int worker_fd = first_descriptor;  // the worker's end of the socket to its keeper
constexpr int worker_config_fd =
    first_descriptor + 1;  // the text of the configuration file that holds (handed_text.h)
constexpr int worker_log_fd = first_descriptor + 2;  // the memory of the newest log lines (recent_log.h)

}  // namespace eagle::server
