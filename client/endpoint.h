// Endpoints: the text that says where a daemon listens.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace eagle {

// A unix socket, or a TCP address.
struct Endpoint {
  std::string path;
  std::string host = {};  // of a TCP address; a name, or an address (without brackets)
  std::uint16_t port = 0;
  [[nodiscard]] bool tcp() const { return !host.empty(); }
  [[nodiscard]] std::string text() const { return tcp() ? "dns:" + target() : "unix:" + path; }
  // "HOST:PORT", an IPv6 address in brackets.
  [[nodiscard]] std::string target() const;
  // Whether the host is this machine by name or address; no name is looked up.
  [[nodiscard]] bool loopback() const;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// The most bytes that the path of a unix socket may have (sockaddr_un, less the closing NUL).
constexpr std::size_t max_socket_path_bytes = 107;

// "unix:PATH" or "unix:///PATH", "dns:HOST:PORT" or "dns:///HOST:PORT". BAD_ENDPOINT says what is wrong and
// what to write instead.
StatusOr<Endpoint> parse_endpoint(std::string_view text);

// Where a daemon listens that nobody named: the system's socket, then the user's.
std::vector<Endpoint> default_endpoints();

}  // namespace eagle
