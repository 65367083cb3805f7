// What every command of eaglectl gets: how to reach a daemon, and how to print.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "client/host_admin.h"
#include "eagle/client/session.h"
#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace CLI {
class App;
}

namespace eagle::ctl {

// Of the program, as docs/manual/eaglectl.md tells it.
enum class Exit : std::uint8_t {
  well = 0,
  refused = 1,  // the daemon said no, or is not there; a file cannot be read or written
  usage = 2,    // the command line is wrong
  unwell = 3,   // what was looked at or checked is not as it should be
};

struct Options {
  std::string endpoint;  // empty: as connect() looks for it, without starting one
  bool json = false;
  std::string tls_ca;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_server_name;
  std::string token_file;
  double timeout_s = 10;
};

// A command is what its options, which CLI11 has filled in by then, make of this.
using Command = std::function<StatusOr<Exit>(const Options&)>;

// Where the groups of commands put theirs: the one that was given is run once the whole line is read.
struct Chosen {
  Command command;
};

// How to connect, from the options. BAD_VALUE for files that cannot be read.
StatusOr<ConnectOptions> connect_options(const Options& options);
// A session in the daemon that the options mean. NO_DAEMON: none is started.
StatusOr<Session> connect(const Options& options);
// The same, for who asks as an operator.
struct Operator {
  Session session;
  HostAdmin* admin = nullptr;  // of the session
};
StatusOr<Operator> connect_operator(const Options& options);

// Writes a file that somebody named; "-" is the standard output. SYSTEM.
Status write_file(const std::string& path, std::string_view content);
// Makes a file of this mode for writing, never over one that is there. SYSTEM.
StatusOr<UniqueFd> new_file(const std::string& path, unsigned mode);

// ---- the groups, each in a file of its name

void add_daemon_commands(CLI::App& app, Chosen& chosen);  // info, top, sessions, planes, health
void add_graph_commands(CLI::App& app, Chosen& chosen);   // graphs, show, explain, graph
void add_kernel_commands(CLI::App& app, Chosen& chosen);  // kernel
void add_operate_commands(CLI::App& app,
                          Chosen& chosen);                // timeline, quarantine, drain and so on
void add_doctor_commands(CLI::App& app, Chosen& chosen);  // doctor
void add_replay_commands(CLI::App& app, Chosen& chosen);  // record, replay
void add_check_commands(CLI::App& app, Chosen& chosen);   // bench, verify

}  // namespace eagle::ctl
