#include "server/ring/rings.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "engine/base/spin.h"
#include "engine/run/host.h"

namespace eagle::server {
namespace {

// Ticks that run backwards are long ago, too.
bool longer_than(std::chrono::nanoseconds time, Ticks since, Ticks now) {
  return now - since > ticks_of(std::chrono::duration<double>(time).count());
}

// No sleep is longer, so that nothing that was missed is missed for good.
constexpr int longest_sleep_ms = 1000;

}  // namespace

Rings::Rings() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{EPOLLIN, {.ptr = nullptr}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), &event);
}

Status Rings::usable() const {
  if (epoll_.valid() && wakeup_.valid()) return {};
  return {Reason::system, "no descriptors are left for the executor to sleep with; raise RLIMIT_NOFILE"};
}

// The doorbell is the client's too, who could make a read of it block: it is never read, and each write is
// heard because the epoll looks for edges.
Status Rings::add(std::shared_ptr<Ring> ring) {
  epoll_event event{EPOLLIN | EPOLLET, {.ptr = ring.get()}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, ring->doorbell(), &event) != 0) {
    return {Reason::system, std::string("epoll_ctl: ") + std::strerror(errno)};
  }
  {
    const std::lock_guard lock(mutex_);
    added_.push_back(std::move(ring));
    changed_.store(true, std::memory_order_seq_cst);
  }
  notify();
  return {};
}

void Rings::remove(const Ring* ring) {
  {
    const std::lock_guard lock(mutex_);
    removed_.push_back(ring);
    changed_.store(true, std::memory_order_seq_cst);
  }
  notify();
}

// `sleep` says that it sleeps and then looks for changes; changes are said, and then it is asked whether it
// sleeps. One of the two sees the other only where all of that is in one order: seq_cst, each of them.
void Rings::notify() {
  if (!asleep_.load(std::memory_order_seq_cst)) return;
  const std::uint64_t one = 1;
  static_cast<void>(::write(wakeup_.get(), &one, sizeof one));
}

void Rings::apply_changes() {
  if (!changed_.load(std::memory_order_acquire)) return;
  std::vector<std::shared_ptr<Ring>> added;
  std::vector<const Ring*> removed;
  {
    const std::lock_guard lock(mutex_);
    added.swap(added_);
    removed.swap(removed_);
    changed_.store(false, std::memory_order_relaxed);
  }
  for (std::shared_ptr<Ring>& ring : added) {
    // Awake at first: its doorbell may have rung before anybody knew whose it was.
    ring->set_asleep(false);
    awake_.push_back({ring, ticks_now()});
    const Ring* const key = ring.get();
    all_.emplace(key, std::move(ring));
  }
  for (const Ring* const ring : removed) {
    const auto known = all_.find(ring);
    if (known == all_.end()) continue;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, ring->doorbell(), nullptr);
    std::erase_if(awake_, [ring](const Known& one) { return one.ring.get() == ring; });
    all_.erase(known);
  }
}

bool Rings::pending() {
  apply_changes();
  return std::any_of(all_.begin(), all_.end(), [](const auto& known) { return known.second->pending(); });
}

// Wakes the rings whose doorbells rang.
void Rings::listen(int timeout_ms) {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  listened_ = ticks_now();
  for (int i = 0; i < count; ++i) {
    const auto* const ring = static_cast<const Ring*>(events[static_cast<std::size_t>(i)].data.ptr);
    if (ring == nullptr) {
      std::uint64_t notes = 0;
      static_cast<void>(::read(wakeup_.get(), &notes, sizeof notes));
      continue;
    }
    const auto known = all_.find(ring);
    if (known == all_.end()) continue;
    known->second->set_asleep(false);
    const bool is_awake = std::any_of(awake_.begin(), awake_.end(),
                                      [ring](const Known& one) { return one.ring.get() == ring; });
    if (!is_awake) awake_.push_back({known->second, listened_});
  }
}

bool Rings::visit() {
  apply_changes();
  if (all_.empty()) return false;
  if (const Ticks now = ticks_now(); longer_than(listen_interval, listened_, now)) {
    send_unused_to_sleep(now);
    listen(0);
  }
  int left = entries_a_turn;
  std::size_t looked = 0;
  for (; looked < awake_.size() && left > 0; ++looked) {
    Known& one = awake_[looked];
    const int taken = one.ring->visit(std::min(entries_a_visit, left));
    if (taken == 0) continue;
    left -= taken;
    one.used = ticks_now();
    note_taken(*one.ring, one.used);
  }
  const bool found = left < entries_a_turn;
  // The first in line is another one next time: who was not looked at, else the second.
  if (found && awake_.size() > 1) {
    const std::size_t first = looked < awake_.size() ? looked : 1;
    std::rotate(awake_.begin(), awake_.begin() + static_cast<std::ptrdiff_t>(first), awake_.end());
  }
  return found;
}

// So that what is looked at between jobs stays short.
void Rings::send_unused_to_sleep(Ticks now) {
  std::erase_if(awake_, [now](const Known& one) {
    if (!longer_than(stays_awake, one.used, now)) return false;
    one.ring->set_asleep(true);
    if (!one.ring->pending()) return true;
    one.ring->set_asleep(false);
    return false;
  });
}

void Rings::note_taken(const Ring& ring, Ticks now) {
  quick_ = longer_than(quick, taken_, now) ? 0 : quick_ + 1;
  taken_ = now;
  client_processor_ = ring.client_processor();
}

// To move costs what a few launches do, and pays only between launches without a sleep: so the thread moves
// when the client has its answer and is about to launch again, and says so. A sleeping one would be woken
// where it went.
void Rings::step_aside() {
  if (quick_ < quick_launches) return;
  const auto moving = [this](bool is) {
    for (const Known& one : awake_) one.ring->set_moving(is);
  };
  if (step_aside_.from(client_processor_, static_cast<int>(awake_.size()), moving)) taken_ = ticks_now();
}

// Not on the processor that the client needs, to take what it was told and to launch again.
bool Rings::may_spin() const {
  // With one processor, whoever is waited for could not run.
  static const bool has_others = run::allowed_threads() > 1;
  return has_others && !awake_.empty() && client_processor_ != ::sched_getcpu() &&
         !longer_than(sleeps_by_then, taken_, ticks_now());
}

bool Rings::spin_for_work(const std::function<bool()>& idle) {
  if (!may_spin()) return false;
  const Ticks begun = ticks_now();
  for (int round = 1;; ++round) {
    for (int i = 0; i < 16; ++i) {
      for (const Known& one : awake_) {
        if (one.ring->pending_soon()) return true;
      }
      pause_a_little();
    }
    if (!idle() || changed_.load(std::memory_order_relaxed)) return true;
    const bool over = longer_than(spin, begun, ticks_now());
    // Slots that are seldom used lie far apart: a look at all takes as long as the pauses do.
    if (over || round % 8 == 0) {
      for (const Known& one : awake_) {
        if (one.ring->pending()) return true;
      }
    }
    if (over) return false;
  }
}

bool Rings::send_all_to_sleep() {
  for (const Known& one : awake_) one.ring->set_asleep(true);
  const bool pending =
      std::any_of(awake_.begin(), awake_.end(), [](const Known& one) { return one.ring->pending(); });
  if (pending) {
    for (const Known& one : awake_) one.ring->set_asleep(false);
    return false;
  }
  awake_.clear();
  return true;
}

void Rings::sleep(const std::function<bool()>& idle) {
  step_aside();
  if (spin_for_work(idle) || !send_all_to_sleep()) return;
  asleep_.store(true, std::memory_order_seq_cst);
  if (idle() && !changed_.load(std::memory_order_seq_cst)) listen(longest_sleep_ms);
  asleep_.store(false, std::memory_order_relaxed);
}

}  // namespace eagle::server
