// Options: what eagled is told by its command line, its environment and its configuration file, in this
// order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "server/limits.h"
#include "server/tenants.h"
#include "server/tls_files.h"
#include "server/tokens.h"

namespace eagle::server {

struct ListenOptions {
  std::string endpoint;  // "unix:PATH" or "dns:HOST:PORT"
  std::string identity;  // "uid", "certificate", "token", "anonymous"; empty: what suits
  friend bool operator==(const ListenOptions&, const ListenOptions&) = default;
};

struct ProgramOptions {
  std::vector<ListenOptions> listen;      // one unix socket, any number of TCP addresses
  int threads = 0;                        // 0: what the machine and cgroup allow
  std::uint64_t plane_budget_bytes = 0;   // 0: three quarters of what the process may use
  std::string devices = "auto";           // GPUs that may be used: "auto", "none", or UUIDs with commas
  std::uint64_t device_budget_bytes = 0;  // of planes on each; 0: three quarters of what it has
  int drain_timeout_s = 30;
  int crash_window_s = 60;          // in which a worker may die so often, and is then started no more
  int compile_timeout_s = 60;       // of one kernel
  std::string cache_directory;      // of compiled kernels; empty: none
  std::string log_level;            // empty: info; warn for a private daemon, whose stderr is its client's
  std::string log_format = "text";  // or "json": an object a line
  std::string metrics;              // "HOST:PORT" where Prometheus finds them; empty: nowhere
  std::string web;                  // "HOST:PORT" of the dashboard; empty: nowhere
  // Principals whom Admin obeys; empty: root and whom the daemon runs as.
  std::vector<std::string> admins;
  bool keeper = true;   // false: one process, which nothing outlives
  bool worker = false;  // it was started by a keeper
  TlsFiles tls;
  std::string tokens;  // the file; empty: none
  bool insecure_i_know = false;
  std::map<std::string, TenantPolicy> tenants;  // by principal; "*": everybody else
  Limits limits;
  int owner_fd = -1;
  int ready_fd = -1;

  std::string config;         // the file; empty: none
  std::string config_text;    // what was read there, by a worker what its keeper handed over
  std::string document;       // print this about the program, and end
  std::string new_token;      // print one for this subject, and end
  bool check_config = false;  // say whether it is good, and end
  bool check_state = false;   // say whether a daemon's state can be gone on with, and end
  bool print_config = false;  // print it, and end
  std::string health;         // ask the daemon that runs about this service, and end
  bool ask_health = false;
  std::shared_ptr<Tokens> loaded_tokens;  // of `tokens`, by main()

  std::vector<std::string> arguments;  // the command line, for `parse_again`
  // Where settings come from that have no default value, by their key in the file ("tls.key").
  std::map<std::string, std::string> origins;

  // The path of the unix socket, or empty.
  [[nodiscard]] std::string unix_endpoint() const;
};

// What log_level may be.
const std::vector<std::string>& log_levels();

// What the command line, the environment (`EAGLED_` and the option's name) and the file say. Returns false
// when the program is to end with `exit_code`: after --help, --version or a mistake, which has been explained
// on stderr.
bool parse(int argc, char** argv, ProgramOptions& options, int& exit_code);

// What the same command line and environment say with the file as it is now, or with `text` in its place.
// BAD_VALUE.
StatusOr<ProgramOptions> parse_again(const ProgramOptions& options,
                                     const std::optional<std::string>& text = std::nullopt);

// Variables of this environment (as `environ`) that begin with EAGLED_ and that nothing reads: BAD_VALUE
// names the first, with the nearest that there is.
Status check_environment(const char* const* environment);

// As a configuration file would say it, each setting with a comment that says where it comes from. Secrets
// are in files of their own, which are named here and not shown.
std::string to_toml(const ProgramOptions& options);

// The keys whose settings differ between the two and that a running daemon does not follow.
std::vector<std::string> need_a_restart(const ProgramOptions& now, const ProgramOptions& wanted);

// Principals who may use Admin, as they are configured or by default.
std::vector<std::string> admins_of(const ProgramOptions& options);

}  // namespace eagle::server
