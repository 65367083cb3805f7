#include "server/sockets/tcp_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

namespace eagle::server {
namespace {

constexpr int tcp_backlog = 1024;

Status bad(std::string_view endpoint, const std::string& why) {
  return {Reason::bad_endpoint, "'" + std::string(endpoint.substr(0, 256)) + "' " + why};
}

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return v6.sin6_addr.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) != 0;
}

std::string text_of(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(), host.size(), port.data(),
                    port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "dns:?";
  }
  const std::string name = address.ss_family == AF_INET6 ? "[" + std::string(host.data()) + "]" : host.data();
  return "dns:" + name + ":" + port.data();
}

}  // namespace

StatusOr<TcpAddress> tcp_address(std::string_view endpoint) {
  constexpr std::string_view scheme = "dns:";
  if (!endpoint.starts_with(scheme)) return bad(endpoint, "is no TCP endpoint; write dns:HOST:PORT");
  std::string_view rest = endpoint.substr(scheme.size());
  while (rest.starts_with('/')) rest.remove_prefix(1);  // dns:///host:port, as gRPC writes it
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos)
    return bad(endpoint, "names no port; write dns:HOST:PORT, for example :7411");
  TcpAddress address;
  const std::string_view port = rest.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size()) {
    return bad(endpoint, "has no port from 0 to 65535 after its last colon");
  }
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad(endpoint, "has an IPv6 address without brackets; write dns:[ADDRESS]:PORT");
  }
  if (host.empty() || host.size() > 253 || host.find('\0') != std::string_view::npos) {
    return bad(endpoint, "names no host; write dns:HOST:PORT, for all addresses dns:0.0.0.0:PORT");
  }
  address.host = host;
  return address;
}

StatusOr<std::vector<TcpSocket>> TcpSocket::open(const TcpAddress& address) {
  const std::string endpoint = "dns:" + address.host + ":" + std::to_string(address.port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (error != 0) return bad(endpoint, std::string("has no address (") + ::gai_strerror(error) + ")");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, ::freeaddrinfo);

  std::vector<TcpSocket> sockets;
  int failed = 0;
  for (const addrinfo* found = list; found != nullptr; found = found->ai_next) {
    TcpSocket socket;
    socket.fd_.reset(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    constexpr int on = 1;
    // A name with addresses of both kinds: where the machine has no IPv6 the other one does.
    if (!socket.fd_.valid()) {
      failed = errno;
      continue;
    }
    ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (found->ai_family == AF_INET6) ::setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (::bind(socket.fd(), found->ai_addr, found->ai_addrlen) != 0 ||
        ::listen(socket.fd(), tcp_backlog) != 0) {
      failed = errno;
      if (failed == EADDRNOTAVAIL) continue;
      return bad(endpoint, std::string("cannot be listened at: ") + std::strerror(failed));
    }
    EAGLE_ASSIGN_OR_RETURN(TcpSocket named, adopt(std::move(socket.fd_)));
    sockets.push_back(std::move(named));
    if (address.port == 0) break;  // the addresses would get different ones
  }
  if (sockets.empty()) return bad(endpoint, std::string("cannot be listened at: ") + std::strerror(failed));
  return sockets;
}

StatusOr<TcpSocket> TcpSocket::adopt(UniqueFd fd) {
  TcpSocket socket;
  socket.fd_ = std::move(fd);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return Status(Reason::system, std::string("getsockname: ") + std::strerror(errno));
  }
  socket.loopback_ = is_loopback(*reinterpret_cast<const sockaddr*>(&bound));
  socket.endpoint_ = text_of(bound, size);
  return socket;
}

}  // namespace eagle::server
