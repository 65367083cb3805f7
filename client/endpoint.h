// Endpoints: the text that says where a daemon listens.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace eagle {

// A unix socket.
struct Endpoint {
  std::string path;
  [[nodiscard]] std::string text() const { return "unix:" + path; }
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// The most bytes that the path of a unix socket may have (sockaddr_un, less the closing NUL).
constexpr std::size_t max_socket_path_bytes = 107;

// "unix:PATH" or "unix:///PATH". BAD_ENDPOINT says what is wrong and what to write instead.
StatusOr<Endpoint> parse_endpoint(std::string_view text);

// Where a daemon listens that nobody named: the system's socket, then the user's.
std::vector<Endpoint> default_endpoints();

}  // namespace eagle
