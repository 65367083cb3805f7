#include "client/endpoint.h"

#include <charconv>
#include <cstdlib>

namespace eagle {
namespace {

Status bad(std::string_view text, const std::string& why) {
  return {Reason::bad_endpoint, "endpoint '" + std::string(text) + "' " + why};
}

StatusOr<Endpoint> parse_tcp(std::string_view text, std::string_view rest) {
  while (rest.starts_with('/')) rest.remove_prefix(1);
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos)
    return bad(text, "names no port; write dns:HOST:PORT, for example dns:host:7411");
  Endpoint endpoint;
  const std::string_view port = rest.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size() || endpoint.port == 0) {
    return bad(text, "has no port from 1 to 65535 after its last colon; write dns:HOST:PORT");
  }
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad(text, "has an IPv6 address without brackets; write dns:[ADDRESS]:PORT");
  }
  if (host.empty() || host.size() > 253 ||
      host.find_first_of(std::string_view("\0/ %", 4)) != std::string_view::npos) {
    return bad(text, "names no host; write dns:HOST:PORT");
  }
  endpoint.host = host;
  return endpoint;
}

}  // namespace

std::string Endpoint::target() const {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port);
}

bool Endpoint::loopback() const { return host == "localhost" || host == "::1" || host.starts_with("127."); }

StatusOr<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return bad(text,
               "names no scheme; write unix:PATH or dns:HOST:PORT, for example unix:/run/eagled/eagled.sock");
  }
  const std::string_view scheme = text.substr(0, colon);
  if (scheme == "dns") return parse_tcp(text, text.substr(colon + 1));
  if (scheme == "tcp" || scheme == "ipv4" || scheme == "ipv6") {
    return bad(text, "has the scheme '" + std::string(scheme) + "'; TCP is written dns:HOST:PORT");
  }
  if (scheme != "unix") {
    return bad(text,
               "has the unknown scheme '" + std::string(scheme) + "'; write unix:PATH or dns:HOST:PORT");
  }
  std::string_view path = text.substr(colon + 1);
  if (path.starts_with("//")) {
    path.remove_prefix(2);
    if (!path.starts_with('/'))
      return bad(text, "has a host in its unix: address; write unix:PATH or unix:///PATH");
  }
  if (path.empty()) return bad(text, "names no path; write unix:PATH");
  if (path.find('\0') != std::string_view::npos) {
    return bad(text.substr(0, text.find('\0')),
               "has a NUL byte in its path; abstract sockets are not served");
  }
  if (path.size() > max_socket_path_bytes) {
    return bad(text,
               "has a path of " + std::to_string(path.size()) + " bytes; the system allows a unix socket " +
                   std::to_string(max_socket_path_bytes) +
                   ", so let the daemon listen at a shorter path (or reach it through a symbolic link)");
  }
  return Endpoint{std::string(path)};
}

std::vector<Endpoint> default_endpoints() {
  std::vector<Endpoint> endpoints = {{"/run/eagled/eagled.sock"}};
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime != '\0') {
    std::string path = std::string(runtime) + "/eagled.sock";
    if (path.size() <= max_socket_path_bytes) endpoints.push_back({std::move(path)});
  }
  return endpoints;
}

}  // namespace eagle
