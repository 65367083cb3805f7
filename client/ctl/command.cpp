#include "client/ctl/command.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "client/discovery.h"
#include "client/host.h"

namespace eagle::ctl {
namespace {

constexpr std::size_t most_token_bytes = 4096;

StatusOr<std::string> token_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Status(Reason::bad_value, "--token-file: '" + path + "' cannot be read: " + std::strerror(errno));
  }
  std::string token(most_token_bytes + 1, '\0');
  file.read(token.data(), static_cast<std::streamsize>(token.size()));
  token.resize(static_cast<std::size_t>(file.gcount()));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' '))
    token.pop_back();
  if (token.empty() || token.size() > most_token_bytes ||
      token.find_first_of(std::string_view("\n\0", 2)) != std::string::npos) {
    return Status(Reason::bad_value,
                  "--token-file: expected one line with a token (eagled --new-token) in '" + path +
                      "', found something else");
  }
  return token;
}

}  // namespace

StatusOr<ConnectOptions> connect_options(const Options& options) {
  ConnectOptions connect;
  connect.client_name = "eaglectl";
  connect.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_s * 1000));
  if (!options.tls_ca.empty() || !options.tls_cert.empty() || !options.tls_key.empty())
    connect.tls = TlsOptions{options.tls_ca, options.tls_cert, options.tls_key, options.tls_server_name};
  if (!options.token_file.empty()) {
    EAGLE_ASSIGN_OR_RETURN(connect.token, token_in(options.token_file));
  }
  return connect;
}

// A tool that looks must not start what it looks at.
StatusOr<Session> connect(const Options& options) {
  EAGLE_ASSIGN_OR_RETURN(const ConnectOptions how, connect_options(options));
  EAGLE_ASSIGN_OR_RETURN(auto host, discover(options.endpoint, how, Fallback::none));
  return Session(std::move(host));
}

StatusOr<Operator> connect_operator(const Options& options) {
  EAGLE_ASSIGN_OR_RETURN(Session session, connect(options));
  HostAdmin* const admin = session.host()->admin();
  if (admin == nullptr) return Status(Reason::internal, "this session has no daemon behind it");
  return Operator{std::move(session), admin};
}

Status write_file(const std::string& path, std::string_view content) {
  if (path == "-") {
    std::cout.write(content.data(), static_cast<std::streamsize>(content.size()));
    std::cout.flush();
    return std::cout ? Status() : Status(Reason::system, "the standard output cannot be written to");
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (file) return {};
  return {Reason::system, "'" + path + "' cannot be written: " + std::strerror(errno)};
}

StatusOr<UniqueFd> new_file(const std::string& path, unsigned mode) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (file.valid()) return file;
  return Status(Reason::system, "'" + path + "' cannot be made: " + std::strerror(errno) +
                                    (errno == EEXIST ? "; name another file, or remove it first" : ""));
}

}  // namespace eagle::ctl
