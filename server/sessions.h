// Sessions: who is connected, found by the secret that every call carries; and who may come back.
//
// A session is attached to one side connection at a time. When that ends, the session ends, or where it has a
// lease it is kept for so long, and may be resumed with its secret. One that another worker left is attached
// to nobody at first: while its client's process lives it is kept without limit, because that client may be
// idle and not know; where the process cannot be seen, for `longest_silence`, within which it says that it
// lives.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "server/limits.h"
#include "server/log_limit.h"
#include "server/principal.h"
#include "server/secret.h"
#include "server/session.h"
#include "server/state_log.h"
#include "server/work_pool.h"

namespace eagle::v1 {
class SessionRecord;
}

namespace eagle::server {

// Of a session over TCP after a worker's death, at least.
constexpr std::chrono::seconds orphan_grace{30};
constexpr std::chrono::seconds longest_lease{30 * 24 * 3600};

// Client-made text for logs: printable ASCII, cut to 64 characters.
std::string loggable(std::string_view text);

// Thread-safe.
class Sessions {
public:
  using Clock = std::chrono::steady_clock;

  // `log`: where sessions are written down; null: nowhere. `epoch`: how many workers there were before. What
  // it points to outlives it. `ended` (may be empty) is told of every session that has ended, before what it
  // held goes.
  struct Survival {
    StateLog* log = nullptr;
    std::uint32_t epoch = 0;
    Ledger* ledger = nullptr;  // of what has begun
  };
  Sessions(PlaneBudget& budget, const Limits& limits) : Sessions(budget, limits, Survival{}, {}) {}
  Sessions(PlaneBudget& budget, const Limits& limits, Survival survival,
           std::function<void(const Session&)> ended);
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  struct Opened {
    std::shared_ptr<Session> session;
    Secret secret;                 // for the client; kept here as a digest
    std::uint64_t attachment = 0;  // for `detach`
    ProcessRef process;            // the client's; null: it cannot be seen
  };
  struct OpenOptions {
    std::chrono::seconds lease{0};
    int process = -1;  // of the client (pidfd), borrowed; -1: it cannot be had
    // The same when a client asks again, because a worker died before it could answer: what that one had
    // opened is ended. Empty: it will not.
    std::string attempt;
    // It came over TCP: a stream holds it, and without one this lease (server/attachments.h).
    std::optional<std::chrono::milliseconds> stream_lease;
    TraceContext trace = {};  // of the user's, that it belongs to
  };
  // QUOTA (sessions); BAD_VALUE for a client name over label_bytes or a lease over `longest_lease`.
  StatusOr<Opened> open(const Principal& principal, const std::string& client, OpenOptions options);
  StatusOr<Opened> open(const Principal& principal, const std::string& client) {
    return open(principal, client, OpenOptions{});
  }

  struct Resumption {
    std::uint64_t session = 0;
    Secret secret{};
    std::uint64_t last_launch = 0;  // the highest id that the client has used
    int process = -1;               // as in OpenOptions
    TraceContext trace = {};        // likewise
  };
  // The session goes on with whoever calls this, and with nobody else from then on. UNAUTHENTICATED unless it
  // is there, with that secret, and of the same user.
  StatusOr<Opened> resume(const Principal& principal, const Resumption& resumption);
  // The connection has ended. The session does, too, unless it has a lease or somebody else has it by now.
  void detach(const std::shared_ptr<Session>& session, std::uint64_t attachment);
  [[nodiscard]] bool attached(const Session& session, std::uint64_t attachment) const;
  [[nodiscard]] bool attached(const Session& session) const;  // to anybody
  // The client wants it no more: it ends with its connection, or with this worker.
  Status leave(const std::shared_ptr<Session>& session);
  // A client's process has ended, whether or not its connection tells.
  void client_died(std::uint64_t session);
  // Ends what nobody came back for in time, and frees what nobody has mapped any more.
  void expire(Clock::time_point now = Clock::now());

  // A session that another worker left. It may be resumed from now on.
  StatusOr<std::shared_ptr<Session>> restore(std::uint64_t id, const v1::SessionRecord& record);
  StatusOr<std::shared_ptr<Session>> restored(std::uint64_t id) const;  // BAD_MESSAGE
  // Once everything of the sessions has been restored.
  void all_restored();

  // One over TCP, for a stream that is to hold it: it needs no other resuming. UNAUTHENTICATED.
  StatusOr<std::shared_ptr<Session>> find_for_stream(std::string_view secret_hex) const;
  // A stream holds it. `last_launch`: the highest id that its client has used.
  void resumed_by_stream(const Session& session, std::uint64_t last_launch);

  // UNAUTHENTICATED; for one that is to be resumed first WORKER_RESTARTED, or over TCP, where that happens by
  // itself, SHUTTING_DOWN. The text is what a call carries.
  StatusOr<std::shared_ptr<Session>> find(std::string_view secret_hex) const;

  // Whose sessions these are.
  Tenants& tenants() { return tenants_; }
  [[nodiscard]] const Tenants& tenants() const { return tenants_; }

  // Principals (as text) whom Admin obeys; at first root and whom the daemon runs as.
  void set_admins(std::vector<std::string> admins);
  [[nodiscard]] bool is_admin(const Principal& principal) const;

  // The sessions that the caller may look at: those of its user, and for admins all of them. Ordered by id.
  std::vector<std::shared_ptr<Session>> visible_to(const Principal& caller) const;

  // The session is found no more, its jobs are cancelled, and what it held goes on a thread that may take
  // its time. Planes that a process of its clients may have mapped are kept, and stay charged, until it ends.
  void end(const std::shared_ptr<Session>& session);
  // Whether planes of this session, which has ended, are kept so.
  [[nodiscard]] bool keeps_mapped(std::uint64_t session) const;
  // Planes that are kept so. A client's process has ended: look which are still needed.
  void free_unmapped();
  // At the end of the daemon: who has them mapped keeps them.
  void leave_to_clients() const;
  [[nodiscard]] std::map<std::uint64_t, std::shared_ptr<Session>> by_id() const;
  // Ends them all.
  void end_all();

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::size_t graphs() const;

private:
  struct Entry {
    std::shared_ptr<Session> session;
    std::uint64_t attachment = 0;              // 0: nobody has it
    bool left_by_a_worker = false;             // until it is resumed
    std::string attempt;                       // by which it was asked for
    std::optional<Clock::time_point> ends_at;  // while nobody has it
  };
  struct Writing {
    int process = -1;
    std::string attempt;
    std::optional<std::chrono::milliseconds> stream_lease;
    std::vector<StateChange> processes;
  };
  Status write_down(const Session& session, const Principal& principal, const Digest& digest,
                    const Writing& writing);
  void reap(PlaneStore::Planes planes);
  // What is written down of a session that ends and leaves such planes.
  void write_down_end(const Session& session, const PlaneStore::Planes& mapped) const;
  void end_unanswered(const Principal& principal, const std::string& attempt);
  Entry* entry_of(std::uint64_t session);  // with the lock held; null: there is none

  PlaneBudget& budget_;
  const Limits& limits_;
  Tenants tenants_;
  const Survival survival_;
  const std::function<void(const Session&)> ended_;
  LogLimit opened_lines_;
  LogLimit ended_lines_;
  LogLimit unresumed_lines_;
  mutable std::mutex mutex_;
  std::vector<std::string> admins_;
  std::uint64_t last_attachment_ = 0;
  std::map<Digest, Entry> by_digest_;
  std::map<std::uint64_t, Digest> digest_of_;                 // by session id
  std::map<std::uint64_t, std::shared_ptr<Session>> closed_;  // while they are restored
  // Of sessions that have ended, by their ids; looked through without the lock.
  std::map<std::uint64_t, std::shared_ptr<const PlaneStore::Planes>> mapped_;
  WorkPool reaper_{1, SIZE_MAX, "sessions"};  // what it holds is bounded by the planes and graphs there are
};

}  // namespace eagle::server
