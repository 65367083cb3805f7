// Keeper: the process that outlives its workers. One thread, no gRPC, no engine.
//
// It owns what must survive: the listening sockets, every plane's memory, the journal, the ledger, and the
// processes of the clients. It starts a worker, hands all of it over, and starts another when that one dies.
// Signals come here alone.
//
// On SIGUSR2 the program at its path takes its place, in the same process and with all that it owns: the
// program is asked first, and the worker drained. What refuses is told in the log, and everything goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "server/keeper/left_state.h"
#include "server/keeper/notifier.h"
#include "server/keeper/worker_process.h"
#include "server/worker_descriptors.h"

namespace eagle::server {

struct KeeperOptions {
  std::vector<std::string> command;  // this program's own; the worker's has one word more
  std::string program;               // where it was started from
  std::vector<std::pair<std::string, UniqueFd>> listening;  // endpoint, socket
  std::uint64_t socket_device = 0;                          // of the unix socket's file, where there is one
  std::uint64_t socket_inode = 0;
  UniqueFd signals;  // signalfd of SIGTERM, SIGINT, SIGHUP and SIGUSR2, which are blocked
  UniqueFd owner;    // end with this process; may be invalid
  UniqueFd ready;    // gets one line; may be invalid
  std::string ready_line = "ready";
  std::uint32_t drain_timeout_s = 30;
  std::uint32_t crash_window_s = 60;  // crash_loop.h
  // What every worker gets (worker_descriptors.h): the configuration's text that holds, which a file that
  // somebody has changed meanwhile is not, and the memory of the newest log lines.
  UniqueFd configuration;
  UniqueFd log;
  // A configuration that is to hold, and what of it is the keeper's own.
  struct Reload {
    UniqueFd configuration;
    std::uint32_t drain_timeout_s = 30;
    std::function<void()> take_over;
  };
  // On SIGHUP: the configuration as it is now, or what is wrong with it. It holds once the worker has said
  // so.
  std::function<StatusOr<Reload>()> reload;
  Notifier notifier;  // the keeper alone speaks to the service manager
  // What the keeper before this one left; its sockets are in `listening`, its owner in `owner`.
  std::optional<Inherited> inherited;
};

// Returns the exit status once it is over: 0 after an orderly end.
int keep(KeeperOptions options);

// The line for whoever started us: "ready ENDPOINT..." or "error: ...". Nobody may be left to read it.
void report(UniqueFd& fd, std::string line);

}  // namespace eagle::server
