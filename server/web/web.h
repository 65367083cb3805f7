// Web: the dashboard, a page that shows admins what the daemon holds and does. It changes nothing.
//
// The page itself tells nothing and is for everybody who gets here; what it shows it fetches from /api/, and
// there only the daemon's admins get an answer: a user of this machine over loopback, whose uid the kernel
// vouches for, or whoever shows a token of an admin's ("Authorization: Bearer"). No cookies, so that no other
// page can ask in somebody's name; a Host that is a name of somebody else's is refused, so that no name can
// be bent to this address. docs/design/dashboard.md has the reasons.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "server/daemon.h"
#include "server/sockets/http_listener.h"
#include "server/surroundings.h"
#include "server/tokens.h"
#include "server/web/drawing.h"
#include "server/web/peer.h"

namespace eagle::server {

// For one thread.
class Web {
public:
  struct Access {
    std::vector<std::string> hosts;        // names that it may be asked by, besides addresses and localhost
    std::shared_ptr<const Tokens> tokens;  // may be null
  };
  using Peer = std::function<std::optional<uid_t>(int socket)>;

  static constexpr std::size_t most_rows = 200;           // of one list
  static constexpr std::chrono::milliseconds fresh{250};  // so long an answer about the state is given again

  // The daemon outlives it.
  Web(Daemon& daemon, Surroundings surroundings, Access access, Peer peer = loopback_peer);
  HttpAnswer answer(const HttpRequest& request);

private:
  using Arguments = std::vector<std::pair<std::string_view, std::string_view>>;
  Status may_look(const HttpRequest& request) const;
  HttpAnswer look(std::string_view path, const Arguments& arguments);
  const std::string& state();
  StatusOr<std::string> graph(const Arguments& arguments);
  StatusOr<std::string> timeline(const Arguments& arguments);

  Daemon& daemon_;
  const Surroundings surroundings_;
  const Access access_;
  const Peer peer_;
  const std::string security_policy_;
  std::string state_;
  std::chrono::steady_clock::time_point state_at_;
  Drawings drawings_;
};

}  // namespace eagle::server
