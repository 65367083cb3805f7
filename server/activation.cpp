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
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

#include "server/sockets/tcp_socket.h"

namespace eagle::server {
namespace {

constexpr int first_fd = 3;
constexpr int most_sockets = 64;

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

// Says where it is, unless other machines could reach it. The dashboard knows who asks by a token there,
// which goes over the line as it is.
Status may_serve(const HttpService& service, const TcpSocket& socket, const ProgramOptions& options) {
  const std::string address = socket.endpoint().substr(4);  // without "dns:"
  const std::string flag = std::string("--") + service.name;
  const bool web = service.name == std::string_view(web_endpoint);
  if (!socket.loopback() && web && options.tokens.empty()) {
    return {Reason::permission_denied,
            flag + ": " + address +
                " can be reached from other machines, where only a token tells who asks; set `tokens` and "
                "name its "
                "subject in `admins`, or use 127.0.0.1 (from elsewhere: ssh -L 7413:127.0.0.1:7413)"};
  }
  if (!socket.loopback() && !options.insecure_i_know) {
    return {Reason::permission_denied, flag + ": " + address +
                                           " can be read from other machines, without TLS" +
                                           (web ? ", and whoever sees the line sees the token; use 127.0.0.1 "
                                                  "and ssh -L, or TLS in front of it"
                                                : " and by everybody; use 127.0.0.1") +
                                           " (--insecure-i-know serves all the same)"};
  }
  spdlog::info("{} at http://{}/{}", web ? "dashboard" : service.name, address, web ? "" : service.name);
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
  if (const HttpService* const service = http_service(socket.name)) {
    if ((options.*service->address).empty()) {
      return Status(Reason::bad_endpoint, "the service manager passed '" + socket.name + "', a socket at " +
                                              tcp.endpoint() + ", and `" + socket.name +
                                              "` is not set; set it to that");
    }
    EAGLE_RETURN_IF_ERROR(may_serve(*service, tcp, options));
    return std::string(service->name);
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

Status open_http(const HttpService& service, const ProgramOptions& options, ListeningSockets& sockets) {
  const std::string& wanted = options.*service.address;
  if (wanted.empty() || there(sockets, service.name)) return {};
  const auto address = tcp_address("dns:" + wanted);
  if (!address.ok()) return address.status().within(std::string("--") + service.name);
  EAGLE_ASSIGN_OR_RETURN(auto opened, TcpSocket::open(*address));
  for (TcpSocket& socket : opened) {
    EAGLE_RETURN_IF_ERROR(may_serve(service, socket, options));
    sockets.emplace_back(service.name, std::move(socket).take());
  }
  return {};
}

}  // namespace

const HttpService* http_service(std::string_view name) {
  const auto* const found = std::find_if(std::begin(http_services), std::end(http_services),
                                         [&](const HttpService& service) { return service.name == name; });
  return found == std::end(http_services) ? nullptr : found;
}

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
  for (const HttpService& service : http_services)
    EAGLE_RETURN_IF_ERROR(open_http(service, options, sockets));
  return sockets;
}

StatusOr<std::vector<PassedSocket>> passed_sockets() {
  const std::string pid = taken("LISTEN_PID");
  const std::string count_text = taken("LISTEN_FDS");
  std::istringstream names(taken("LISTEN_FDNAMES"));
  std::vector<PassedSocket> sockets;
  if (count_text.empty() || number(pid) != ::getpid()) return sockets;  // they are not for us
  const std::optional<int> count = number(count_text);
  if (!count || *count < 0 || *count > most_sockets) {
    return Status(Reason::bad_value, "LISTEN_FDS: expected a number from 0 to " +
                                         std::to_string(most_sockets) + ", found '" + count_text + "'");
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
