// Activation: sockets that a service manager has opened for this process (sd_listen_fds(3)).
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "server/options.h"
#include "server/tcp_serving.h"

namespace eagle::server {

struct PassedSocket {
  std::string name;  // FileDescriptorName=; "unknown" where the manager gives none
  UniqueFd fd;       // closed on exec
  std::string path;  // of a unix socket, else empty
};

// Takes them, once: the environment names them no more afterwards. None where nobody passed any. BAD_VALUE
// where the environment does not say what it should; BAD_ENDPOINT for what is no listening stream socket.
StatusOr<std::vector<PassedSocket>> passed_sockets();

// The sockets of all `dns:` listeners and of the metrics, and the unix socket where it was passed. What was
// passed is used and not opened: a unix socket belongs to the listener with its path, a TCP socket named
// "metrics" to the metrics, any other to the listener with its port. BAD_ENDPOINT for one that no setting
// names; PERMISSION_DENIED for metrics that other machines could read, unless the options insist.
StatusOr<ListeningSockets> listening_sockets(const ProgramOptions& options, std::vector<PassedSocket> passed);

}  // namespace eagle::server
