#include "client/endpoint.h"

#include <cstdlib>

namespace eagle {
namespace {

Status bad(std::string_view text, const std::string& why) {
  return {Reason::bad_endpoint, "endpoint '" + std::string(text) + "' " + why};
}

}  // namespace

StatusOr<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return bad(text, "names no scheme; write unix:PATH, for example unix:/run/eagled/eagled.sock");
  }
  const std::string_view scheme = text.substr(0, colon);
  if (scheme == "dns" || scheme == "tcp" || scheme == "ipv4" || scheme == "ipv6") {
    return bad(text, "asks for TCP, which is not served yet; use unix:PATH on the daemon's own host");
  }
  if (scheme != "unix") {
    return bad(text, "has the unknown scheme '" + std::string(scheme) + "'; write unix:PATH");
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
