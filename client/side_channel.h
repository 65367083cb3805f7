// SideChannel: a session's own connection to the daemon. It opens the session (the kernel vouches there for
// who each side is) and carries the descriptors of planes. The session lasts as long as the connection.
//
// Thread-safe. Nothing waits past its deadline.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/endpoint.h"
#include "client/session_link.h"
#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "engine/run/cuda/device_sharing.h"
#include "engine/run/host.h"

namespace eagle {

using Deadline = std::chrono::steady_clock::time_point;

// A connected socket whose other end is run by root, by the user `eagled` or by ourselves: anyone else could
// have put a socket there to collect secrets, and gets PERMISSION_DENIED before the first byte is sent.
// NO_DAEMON where nobody listens, DEADLINE where nobody accepts.
StatusOr<UniqueFd> connect_to_daemon(const Endpoint& endpoint, Deadline deadline);

// A session that is to go on.
struct Resumption {
  std::uint64_t session = 0;
  std::string secret;                // bytes
  std::uint64_t last_launch_id = 0;  // the highest that was used
};

// What is asked for.
struct SessionRequest {
  std::string client_name;
  std::chrono::seconds lease{0};  // how long the daemon keeps the session when this process has gone
  std::optional<Resumption> resume;
  std::string attempt;  // random; the same for a request that is made again
  std::string token;    // where the daemon asks for one
  std::string traceparent;
};

class SideChannel final : public SessionLink {
public:
  // Connects and opens a session, or goes on with one. PROTOCOL_MISMATCH names both ranges; UNAUTHENTICATED
  // where there is none to go on with, or the token is none of the daemon's.
  static StatusOr<std::unique_ptr<SideChannel>> open(const Endpoint& endpoint, const SessionRequest& request,
                                                     Deadline deadline);
  ~SideChannel() override;
  SideChannel(const SideChannel&) = delete;
  SideChannel& operator=(const SideChannel&) = delete;

  [[nodiscard]] const OpenedSession& session() const override;

  // The descriptors that stand behind the tokens of new planes, in their order.
  StatusOr<std::vector<UniqueFd>> fetch(const std::vector<std::string>& tokens, Deadline deadline);

  // How to open the plane on a GPU that stands behind a token. READ_ONLY_ARRAY, BAD_VALUE: not at all.
  StatusOr<run::cuda::DeviceHandle> fetch_device(const std::string& token, Deadline deadline);

  // The descriptors of the session's ring: its memory and its doorbell. BAD_MESSAGE from a daemon that has
  // none.
  struct RingDescriptors {
    UniqueFd memory;
    UniqueFd doorbell;
  };
  StatusOr<RingDescriptors> ring(Deadline deadline);

  // False once the daemon has hung up: its process is gone, or it has ended the session.
  [[nodiscard]] bool alive() const override;

  // The daemon is not to keep the session once this connection has ended, whatever happens.
  Status leave(Deadline deadline);

  // This process lives.
  Status beat(Deadline deadline);

  // Ends the session, even where a forked child holds the socket too.
  void shut_down() override;

private:
  struct State;
  explicit SideChannel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace eagle
