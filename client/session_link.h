// SessionLink: what holds a session open, on either way to a daemon.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "engine/base/status.h"
#include "engine/run/host.h"

namespace eagle {

// How long a session is there for its client at least once its worker has died (docs/manual/survival.md).
constexpr std::chrono::milliseconds survival_patience{30'000};

// What the daemon said when it opened the session.
struct OpenedSession {
  std::uint64_t id = 0;
  std::string secret;  // bytes
  std::string server_version;
  run::HostIdentity host;                  // the process that computes
  bool survives = false;                   // its death does not end the session
  bool tells_begun = false;                // what may have begun is refused when it is sent again
  std::chrono::milliseconds heartbeat{0};  // how often to say that this process lives; 0: it is seen
};

// Thread-safe.
class SessionLink {
public:
  virtual ~SessionLink() = default;
  [[nodiscard]] virtual const OpenedSession& session() const = 0;
  // False once the session cannot go on: the daemon is gone, or has ended it.
  [[nodiscard]] virtual bool alive() const = 0;
  // Ends the session.
  virtual void shut_down() = 0;
};

}  // namespace eagle
