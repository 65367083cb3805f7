// Attachment: the stream that holds a session over TCP. When it breaks it is made anew, for as long as the
// session's lease lasts, and the session goes on. For the .cpp files of this folder only: it brings gRPC's
// headers.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "client/endpoint.h"
#include "client/session_link.h"
#include "eagle/client/session.h"
#include "engine/base/status.h"

namespace eagle {

// A channel to a TCP endpoint, which connects by itself. BAD_VALUE for files of TLS that cannot be read, and
// for a token that would travel in the clear to another machine.
StatusOr<std::shared_ptr<grpc::Channel>> tcp_channel(const Endpoint& endpoint, const ConnectOptions& options);

class Attachment final : public SessionLink {
public:
  // Opens a session. NO_DAEMON where nobody answers or TLS fails, UNAUTHENTICATED, DEADLINE,
  // PROTOCOL_MISMATCH.
  static StatusOr<std::unique_ptr<Attachment>> open(std::shared_ptr<grpc::Channel> channel,
                                                    const Endpoint& endpoint, const ConnectOptions& options,
                                                    const std::string& client_name,
                                                    std::chrono::steady_clock::time_point deadline);
  ~Attachment() override;
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  [[nodiscard]] const OpenedSession& session() const override;
  [[nodiscard]] bool alive() const override;
  void shut_down() override;

  // Waits until the stream stands (again), or cannot, or the deadline; whether it stands.
  [[nodiscard]] bool wait_until_attached(std::chrono::steady_clock::time_point deadline);
  // How often the stream has been made, and how many workers it has led to.
  struct Times {
    std::uint64_t attached = 0;
    std::uint64_t workers = 0;
  };
  [[nodiscard]] Times times() const;
  // The client has used launch ids up to this one: the next worker is told.
  void note_launch(std::uint64_t launch_id);

private:
  class State;
  explicit Attachment(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace eagle
