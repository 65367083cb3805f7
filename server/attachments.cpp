#include "server/attachments.h"

#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

#include "server/log_context.h"

namespace eagle::server {

Attachments::Attachments(std::function<void(const std::shared_ptr<Session>&)> end)
    : end_(std::move(end)), thread_([this] { work(); }) {}

Attachments::~Attachments() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
}

StatusOr<std::uint64_t> Attachments::attach(const std::shared_ptr<Session>& session, bool fresh,
                                            Stream stream) {
  std::function<void()> former;  // called after the lock
  std::uint64_t attachment = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(session->id());
    if (!fresh && (found == held_.end() || session->ended())) {
      return Status(
          Reason::unauthenticated,
          "the session is not there any more: its lease is over, or it was closed; open another one");
    }
    Held& held = held_[session->id()];
    if (held.attachment != 0) former = std::move(held.stream.lost);
    attachment = ++last_;
    held = {session, attachment, {}, std::move(stream)};
  }
  if (former) former();
  return attachment;
}

void Attachments::restore(const std::shared_ptr<Session>& session, Clock::duration lease) {
  {
    const std::lock_guard lock(mutex_);
    held_[session->id()] = {session, 0, Clock::now() + lease, {}};
  }
  changed_.notify_all();
}

void Attachments::leave_all() {
  std::vector<std::function<void()>> streams;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, held] : held_) {
      if (held.attachment != 0) streams.push_back(held.stream.leave);
    }
  }
  for (const auto& leave : streams) leave();
}

void Attachments::detach(const std::shared_ptr<Session>& session, std::uint64_t attachment,
                         Clock::duration lease) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(session->id());
    if (found == held_.end() || found->second.attachment != attachment) return;
    found->second.attachment = 0;
    found->second.stream = {};
    found->second.until = Clock::now() + lease;
  }
  const LogScope scope({session->id()});
  if (const auto more = lost_lines_.admit())
    spdlog::info("lost its connection, and stays for {} ms{}",
                 std::chrono::duration_cast<std::chrono::milliseconds>(lease).count(), *more);
  changed_.notify_all();
}

void Attachments::close(const std::shared_ptr<Session>& session, std::uint64_t attachment) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(session->id());
    if (found == held_.end() || found->second.attachment != attachment) return;
    held_.erase(found);
  }
  end_(session);
}

bool Attachments::attached(std::uint64_t session) const {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(session);
  return found != held_.end() && found->second.attachment != 0;
}

std::size_t Attachments::size() const {
  const std::lock_guard lock(mutex_);
  return held_.size();
}

void Attachments::work() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const Clock::time_point now = Clock::now();
    Clock::time_point next = Clock::time_point::max();
    std::vector<std::shared_ptr<Session>> over;
    for (auto it = held_.begin(); it != held_.end();) {
      const Held& held = it->second;
      if (held.attachment == 0 && held.until <= now) {
        over.push_back(held.session);
        it = held_.erase(it);
        continue;
      }
      if (held.attachment == 0) next = std::min(next, held.until);
      ++it;
    }
    if (!over.empty()) {
      lock.unlock();
      for (const auto& session : over) end_(session);
      over.clear();
      lock.lock();
    } else if (next == Clock::time_point::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, next);
    }
  }
}

}  // namespace eagle::server
