#include "server/activation.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>

#include "server/serving.h"
#include "server/sockets/tcp_socket.h"

namespace eagle::server {
namespace {

constexpr int first_fd = 3;
constexpr int most = 64;

std::string taken(const char* name) {
  const char* const value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);
  return text;
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

int option(int fd, int which) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, which, &value, &size) == 0 ? value : -1;
}

StatusOr<std::string> path_of(int fd) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Status(Reason::system, std::string("getsockname: ") + std::strerror(errno));
  }
  const std::size_t length = size - offsetof(sockaddr_un, sun_path);
  return std::string(address.sun_path, ::strnlen(address.sun_path, length));
}

StatusOr<PassedSocket> passed(int fd, std::string name) {
  PassedSocket socket;
  const std::string what =
      "descriptor " + std::to_string(fd) + " ('" + name + "'), which the service manager passed";
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    return Status(Reason::bad_value, what + ": " + std::strerror(errno));
  }
  socket.name = std::move(name);
  socket.fd.reset(fd);
  if (option(fd, SO_TYPE) != SOCK_STREAM || option(fd, SO_ACCEPTCONN) != 1) {
    return Status(Reason::bad_endpoint,
                  what + ": expected a listening stream socket (ListenStream= and Accept=no)");
  }
  // Accepting must never wait: somebody else may be quicker, or the client gone.
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  if (option(fd, SO_DOMAIN) == AF_UNIX) {
    EAGLE_ASSIGN_OR_RETURN(socket.path, path_of(fd));
  }
  return socket;
}

// Says where they are, unless other machines could read them.
Status may_serve_metrics(const TcpSocket& socket, const ProgramOptions& options) {
  if (!socket.loopback() && !options.insecure_i_know) {
    return {Reason::permission_denied,
            "--metrics: " + socket.endpoint() +
                " can be read from other machines, without TLS and by everybody; use "
                "127.0.0.1 (--insecure-i-know serves all the same)"};
  }
  spdlog::info("metrics at http://{}/metrics", socket.endpoint().substr(4));  // without "dns:"
  return {};
}

// Which listener a passed socket is for: its endpoint.
StatusOr<std::string> listener_of(const PassedSocket& socket, const ProgramOptions& options) {
  if (!socket.path.empty()) {
    if (options.unix_endpoint() == "unix:" + socket.path) return options.unix_endpoint();
    return Status(Reason::bad_endpoint, "the service manager passed a socket at '" + socket.path +
                                            "', and [[listen]] names '" + options.unix_endpoint() +
                                            "'; make both the same");
  }
  UniqueFd copy(::fcntl(socket.fd.get(), F_DUPFD_CLOEXEC, 0));
  EAGLE_ASSIGN_OR_RETURN(const TcpSocket tcp, TcpSocket::adopt(std::move(copy)));
  if (socket.name == metrics_endpoint) {
    if (options.metrics.empty()) {
      return Status(Reason::bad_endpoint, "the service manager passed '" + socket.name + "', a socket at " +
                                              tcp.endpoint() + ", and `metrics` is not set; set it to that");
    }
    EAGLE_RETURN_IF_ERROR(may_serve_metrics(tcp, options));
    return std::string(metrics_endpoint);
  }
  EAGLE_ASSIGN_OR_RETURN(const TcpAddress found, tcp_address(tcp.endpoint()));
  for (const ListenOptions& listener : options.listen) {
    if (!listener.endpoint.starts_with("dns:")) continue;
    EAGLE_ASSIGN_OR_RETURN(const TcpAddress wanted, tcp_address(listener.endpoint));
    if (wanted.port == found.port) return listener.endpoint;
  }
  return Status(Reason::bad_endpoint, "the service manager passed '" + socket.name + "', a socket at " +
                                          tcp.endpoint() + ", and no [[listen]] has that port");
}

bool there(const ListeningSockets& sockets, std::string_view endpoint) {
  return std::any_of(sockets.begin(), sockets.end(), [&](const auto& one) { return one.first == endpoint; });
}

Status open_metrics(const ProgramOptions& options, ListeningSockets& sockets) {
  if (options.metrics.empty() || there(sockets, metrics_endpoint)) return {};
  const auto address = tcp_address("dns:" + options.metrics);
  if (!address.ok()) return address.status().within("--metrics");
  EAGLE_ASSIGN_OR_RETURN(auto opened, TcpSocket::open(*address));
  for (TcpSocket& socket : opened) {
    EAGLE_RETURN_IF_ERROR(may_serve_metrics(socket, options));
    sockets.emplace_back(metrics_endpoint, std::move(socket).take());
  }
  return {};
}

}  // namespace

StatusOr<ListeningSockets> listening_sockets(const ProgramOptions& options,
                                             std::vector<PassedSocket> passed) {
  ListeningSockets sockets;
  for (PassedSocket& socket : passed) {
    EAGLE_ASSIGN_OR_RETURN(std::string endpoint, listener_of(socket, options));
    sockets.emplace_back(std::move(endpoint), std::move(socket.fd));
  }
  ProgramOptions others = options;
  std::erase_if(others.listen,
                [&](const ListenOptions& listener) { return there(sockets, listener.endpoint); });
  EAGLE_ASSIGN_OR_RETURN(ListeningSockets opened, open_tcp(others));
  for (auto& socket : opened) sockets.push_back(std::move(socket));
  EAGLE_RETURN_IF_ERROR(open_metrics(options, sockets));
  return sockets;
}

StatusOr<std::vector<PassedSocket>> passed_sockets() {
  const std::string pid = taken("LISTEN_PID");
  const std::string count_text = taken("LISTEN_FDS");
  std::istringstream names(taken("LISTEN_FDNAMES"));
  std::vector<PassedSocket> sockets;
  if (count_text.empty() || number(pid) != ::getpid()) return sockets;  // they are not for us
  const std::optional<int> count = number(count_text);
  if (!count || *count < 0 || *count > most) {
    return Status(Reason::bad_value, "LISTEN_FDS: expected a number from 0 to " + std::to_string(most) +
                                         ", found '" + count_text + "'");
  }
  for (int i = 0; i < *count; ++i) {
    std::string name;
    if (!std::getline(names, name, ':')) name = "unknown";
    EAGLE_ASSIGN_OR_RETURN(PassedSocket socket, passed(first_fd + i, std::move(name)));
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

}  // namespace eagle::server
