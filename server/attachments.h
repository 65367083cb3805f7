// Attachments: sessions whose clients reach the daemon over TCP, and the leases of those whose connection
// broke.
//
// A session is attached by a stream. When the stream breaks, its lease begins; another stream with the
// session's secret takes it over until then, also from a stream that the daemon does not know to be dead.
// When the lease is over the session ends.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/base/status.h"
#include "server/log_limit.h"
#include "server/session.h"

namespace eagle::server {

// Thread-safe.
class Attachments {
public:
  using Clock = std::chrono::steady_clock;

  // `end` ends a session whose lease is over; called without a lock.
  explicit Attachments(std::function<void(const std::shared_ptr<Session>&)> end);
  ~Attachments();  // of the sessions that are left, none is ended
  Attachments(const Attachments&) = delete;
  Attachments& operator=(const Attachments&) = delete;

  // The number of the attachment that holds the session from now on. UNAUTHENTICATED where the session does
  // not live on attachments, or its lease was over this moment. `lost` is called when another one takes it
  // over, `leave` to end the stream well; without a lock.
  struct Stream {
    std::function<void()> lost;
    std::function<void()> leave;
  };
  StatusOr<std::uint64_t> attach(const std::shared_ptr<Session>& session, bool fresh, Stream stream);
  // A session that another worker left: its lease begins.
  void restore(const std::shared_ptr<Session>& session, Clock::duration lease);
  // Ends every stream well, so that the clients make others, which another worker answers.
  void leave_all();
  // The stream broke: the lease begins, unless another attachment has taken over.
  void detach(const std::shared_ptr<Session>& session, std::uint64_t attachment, Clock::duration lease);
  // The client has closed it: it ends now, unless another attachment has taken over.
  void close(const std::shared_ptr<Session>& session, std::uint64_t attachment);

  [[nodiscard]] std::size_t size() const;
  // Whether a stream holds it; else its lease runs, or it does not live on attachments.
  [[nodiscard]] bool attached(std::uint64_t session) const;

private:
  struct Held {
    std::shared_ptr<Session> session;
    std::uint64_t attachment = 0;  // 0: its lease runs
    Clock::time_point until;
    Stream stream;
  };
  void work();

  const std::function<void(const std::shared_ptr<Session>&)> end_;
  LogLimit lost_lines_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Held> held_;  // by session id
  std::uint64_t last_ = 0;
  bool ending_ = false;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace eagle::server
