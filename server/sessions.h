// Sessions: who is connected, found by the secret that every call carries.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "server/limits.h"
#include "server/principal.h"
#include "server/secret.h"
#include "server/session.h"
#include "server/work_pool.h"

namespace eagle::server {

// Client-made text for logs: printable ASCII, cut to 64 characters.
std::string loggable(std::string_view text);

// Thread-safe.
class Sessions {
public:
  // `ended` (may be empty) is told of every session that has ended, before what it held goes.
  Sessions(PlaneBudget& budget, const Limits& limits, std::function<void(const Session&)> ended = {})
      : budget_(budget), limits_(limits), ended_(std::move(ended)) {}
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  struct Opened {
    std::shared_ptr<Session> session;
    Secret secret;  // for the client; kept here as a digest
  };
  // QUOTA (sessions); BAD_VALUE for a client name over label_bytes.
  StatusOr<Opened> open(const Principal& principal, const std::string& client);
  // UNAUTHENTICATED. The text is what a call carries.
  StatusOr<std::shared_ptr<Session>> find(std::string_view secret_hex) const;

  // The sessions whose graphs the caller may look at: those of its user, and for root and whom the daemon
  // runs as all of them. Ordered by id.
  std::vector<std::shared_ptr<Session>> visible_to(const Principal& caller) const;

  // The session is found no more, its jobs are cancelled, and what it held goes on a thread that may take
  // its time. Planes that a client process which still lives may have mapped stay charged: they are given
  // to the caller, to keep until that process has ended, and then `reap`.
  PlaneStore::Planes end(const std::shared_ptr<Session>& session, bool client_lives);
  void reap(PlaneStore::Planes planes);
  // Ends them all.
  void end_all();

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::size_t graphs() const;

private:
  PlaneBudget& budget_;
  const Limits& limits_;
  const std::function<void(const Session&)> ended_;
  mutable std::mutex mutex_;
  std::map<Digest, std::shared_ptr<Session>> by_digest_;
  std::map<std::uint64_t, Digest> digest_of_;  // by session id
  WorkPool reaper_{1, SIZE_MAX, "sessions"};   // what it holds is bounded by the planes and graphs there are
};

}  // namespace eagle::server
