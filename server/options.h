// Options: the command line of eagled.
#pragma once

#include <cstdint>
#include <string>

namespace eagle::server {

struct ProgramOptions {
  std::string listen;                    // "unix:PATH"
  int threads = 0;                       // 0: what the machine and cgroup allow
  std::uint64_t plane_budget_bytes = 0;  // 0: three quarters of what the process may use
  int drain_timeout_s = 30;
  int compile_timeout_s = 60;   // of one kernel
  std::string cache_directory;  // of compiled kernels; empty: none
  std::string log_level;        // empty: info; warn for a private daemon, whose stderr is its client's
  bool keeper = true;           // false: one process, which nothing outlives
  bool worker = false;          // it was started by a keeper
  int owner_fd = -1;
  int ready_fd = -1;
};

// What the command line says. Returns false when the program is to end with `exit_code`: after --help,
// --version or a mistake, which has been explained on stderr.
bool parse(int argc, char** argv, ProgramOptions& options, int& exit_code);

}  // namespace eagle::server
