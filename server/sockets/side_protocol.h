// SideProtocol: what a side connection says, without its socket.
//
// A client says Hello once, which opens its session, and then fetches descriptors for the tokens it got
// over gRPC, and those of its ring. Every request gets one reply.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "server/access.h"
#include "server/daemon.h"
#include "server/principal.h"

namespace eagle::v1 {
class FetchRequest;
class HelloRequest;
class SideReply;
}  // namespace eagle::v1

namespace eagle::server {

inline constexpr std::string_view side_magic = "EAGLESC1";

// A reply as the bytes of its frame, with the descriptors that go along.
struct SideAnswer {
  std::string frame;
  std::vector<int> descriptors;
  std::shared_ptr<const void> owner;  // of the descriptors, until they are on their way
  std::vector<std::string> tokens;    // that are spent once the descriptors are on their way
  std::shared_ptr<const Ring> ring;   // that the session got with it
};

class SideProtocol {
public:
  // `peer`: the user at the other end; `access` may ask for a token instead.
  SideProtocol(Daemon& daemon, Access access, StatusOr<Principal> peer)
      : daemon_(daemon), access_(std::move(access)), peer_(std::move(peer)) {}

  // `message`: a frame's payload, as the client sent it.
  SideAnswer handle(std::string_view message);
  // The descriptors of an answer were sent: its tokens are good no more.
  void sent(const SideAnswer& answer);
  // They never will be: what was made for this answer alone is undone, so that it can be asked for again.
  void not_sent(const SideAnswer& answer);

  // Before Hello: the client's process (pidfd), borrowed; -1 where it cannot be had.
  void set_process(int process) { process_ = process; }

  // Once Hello has opened it.
  [[nodiscard]] const std::shared_ptr<Session>& session() const { return session_; }
  // Whether the session is there and goes on over this connection.
  [[nodiscard]] bool attached() const {
    return session_ && daemon_.sessions().attached(*session_, attachment_);
  }
  // The connection has ended. As Sessions::detach.
  void detach();

  // An answer that tells of `status`, as Daemon::told has it, and is counted.
  [[nodiscard]] SideAnswer refuse(const Status& status) const;

private:
  [[nodiscard]] std::string peer() const;  // for the log
  [[nodiscard]] StatusOr<Principal> who(const std::string& token) const;
  SideAnswer hello(const v1::HelloRequest& request);
  SideAnswer fetch(const v1::FetchRequest& request);
  SideAnswer ring();
  SideAnswer leave();
  static SideAnswer beat();
  StatusOr<Sessions::Opened> open(const Principal& principal, const v1::HelloRequest& request);

  Daemon& daemon_;
  const Access access_;
  const StatusOr<Principal> peer_;
  int process_ = -1;
  std::shared_ptr<Session> session_;
  std::uint64_t attachment_ = 0;
  ProcessRef client_;  // the same, once the session knows it
};

}  // namespace eagle::server
