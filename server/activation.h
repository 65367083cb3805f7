// Activation: sockets that a service manager has opened for this process (sd_listen_fds(3)).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "server/options.h"
#include "server/tcp_serving.h"

namespace eagle::server {

// What is served over HTTP: where it is among the listening sockets (and in the file, and with "--" in front
// on the command line), its setting, and where it usually is.
struct HttpService {
  const char* name;
  std::string ProgramOptions::*address;
  const char* usual;
};
constexpr const char* metrics_endpoint = "metrics";
constexpr const char* web_endpoint = "web";
constexpr HttpService http_services[] = {{metrics_endpoint, &ProgramOptions::metrics, "127.0.0.1:7412"},
                                         {web_endpoint, &ProgramOptions::web, "127.0.0.1:7413"}};
// The one of that name; null: none.
const HttpService* http_service(std::string_view name);

struct PassedSocket {
  std::string name;  // FileDescriptorName=; "unknown" where the manager gives none
  UniqueFd fd;       // closed on exec
  std::string path;  // of a unix socket, else empty
};

// Takes them, once: the environment names them no more afterwards. None where nobody passed any. BAD_VALUE
// where the environment does not say what it should; BAD_ENDPOINT for what is no listening stream socket.
StatusOr<std::vector<PassedSocket>> passed_sockets();

// The sockets of all `dns:` listeners and of what is served over HTTP, and the unix socket where it was
// passed. What was passed is used and not opened: a unix socket belongs to the listener with its path, a TCP
// socket named as an HttpService to that, any other to the listener with its port. BAD_ENDPOINT for one that
// no setting names; PERMISSION_DENIED for HTTP that other machines could reach, unless the options insist,
// and for a dashboard there without tokens, always.
StatusOr<ListeningSockets> listening_sockets(const ProgramOptions& options, std::vector<PassedSocket> passed);

}  // namespace eagle::server
