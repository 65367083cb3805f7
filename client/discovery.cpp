#include "client/discovery.h"

#include <chrono>
#include <cstdlib>
#include <string>

#include "client/endpoint.h"
#include "client/private_daemon.h"
#include "client/remote_host.h"

namespace eagle {
namespace {

StatusOr<std::shared_ptr<Host>> open_named(std::string_view text, const ConnectOptions& options) {
  EAGLE_ASSIGN_OR_RETURN(const Endpoint endpoint, parse_endpoint(text));
  return open_remote(endpoint, options, nullptr);
}

// Nobody there, or a daemon that is for others: look further.
bool keep_looking(const Status& status) {
  return status.reason() == Reason::no_daemon || status.reason() == Reason::permission_denied;
}

// The process's own daemon may be dying just now, and is then replaced: its end is not long in coming.
StatusOr<std::shared_ptr<Host>> open_private(const ConnectOptions& options) {
  const auto deadline = std::chrono::steady_clock::now() + options.timeout;
  while (true) {
    EAGLE_ASSIGN_OR_RETURN(auto daemon, PrivateDaemon::of_process(deadline));
    auto host = open_remote(daemon->endpoint(), options, daemon);
    if (host.ok() || host.status().code() != Code::unavailable || !daemon->ends_before(deadline)) return host;
  }
}

}  // namespace

StatusOr<std::shared_ptr<Host>> discover(std::string_view endpoint, const ConnectOptions& options,
                                         Fallback fallback) {
  if (!endpoint.empty()) {
    auto host = open_named(endpoint, options);
    return host.ok() ? std::move(host) : host.status().within("connect");
  }
  if (const char* named = std::getenv("EAGLE_ENDPOINT"); named != nullptr && *named != '\0') {
    auto host = open_named(named, options);
    return host.ok() ? std::move(host) : host.status().within("connect (EAGLE_ENDPOINT)");
  }
  std::string looked;
  for (const Endpoint& candidate : default_endpoints()) {
    auto host = open_remote(candidate, options, nullptr);
    if (host.ok()) return host;
    if (!keep_looking(host.status())) return host.status().within("connect");
    looked += (looked.empty() ? "" : ", ") + candidate.text();
  }
  if (fallback == Fallback::none) {
    return Status(Reason::no_daemon,
                  "no daemon answers at " + looked +
                      "; start one with `eagled --listen unix:PATH`, or name one that runs");
  }
  auto host = open_private(options);
  return host.ok() ? std::move(host) : host.status().within("connect");
}

}  // namespace eagle
