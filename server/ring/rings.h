// Rings: where the executor's thread looks for launches, and where it sleeps.
//
// A ring is *awake* while it is used: the executor looks at it between jobs, and the client need not ring.
// After a while without use it falls *asleep*: the client rings its doorbell, an epoll of all doorbells hears
// it, and the ring is awake again. So a thousand idle sessions cost nothing, and a busy one costs no system
// call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/base/ticks.h"
#include "engine/base/unique_fd.h"
#include "server/ring/ring.h"
#include "server/ring/step_aside.h"

namespace eagle::server {

class Rings {
public:
  // How long the executor looks around before it sleeps, where a ring was used just now.
  static constexpr std::chrono::microseconds spin{50};
  // A client that launches again and again, sooner than that, waits without sleeping.
  static constexpr std::chrono::microseconds quick{50};
  static constexpr int quick_launches = 3;
  // One that has waited so long sleeps, and is likely to be woken on the processor of whoever wakes it.
  static constexpr std::chrono::microseconds sleeps_by_then{100};
  static constexpr int entries_a_visit = 4;  // of one ring, before the next one has its turn
  // Of all rings, before a job has its turn: entries that are refused cost time, too, and nobody's share of
  // it.
  static constexpr int entries_a_turn = 64;
  // A ring that had nothing for so long falls asleep.
  static constexpr std::chrono::milliseconds stays_awake{1};
  // While jobs run, doorbells are listened for this often.
  static constexpr std::chrono::microseconds listen_interval{200};

  Rings();
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;

  // SYSTEM where the process has no descriptors left for it; nothing else may be called then.
  [[nodiscard]] Status usable() const;

  // Thread-safe.
  Status add(std::shared_ptr<Ring> ring);  // SYSTEM: its doorbell cannot be listened to
  void remove(const Ring* ring);           // nothing new is taken from it soon; what was taken goes on
  void notify();                           // ends a sleep, or the next one

  // Of the executor's thread.

  // Takes what is there, up to `entries_a_turn`. Whether there was anything.
  bool visit();
  // Returns when a ring may have work, after `notify`, or after a second. `idle` says, once it is too late to
  // miss a `notify`, whether there is still nothing else to do.
  void sleep(const std::function<bool()>& idle);
  [[nodiscard]] std::size_t awake() const { return awake_.size(); }
  // Whether any of them has something, also what nobody was told of.
  [[nodiscard]] bool pending();

private:
  struct Known {
    std::shared_ptr<Ring> ring;
    Ticks used = 0;  // when it last had something
  };

  void apply_changes();
  void listen(int timeout_ms);
  void send_unused_to_sleep(Ticks now);
  void note_taken(const Ring& ring, Ticks now);
  void step_aside();
  [[nodiscard]] bool may_spin() const;
  bool spin_for_work(const std::function<bool()>& idle);
  bool send_all_to_sleep();  // false: one of them has work

  UniqueFd epoll_;
  UniqueFd wakeup_;
  std::atomic<bool> asleep_ = false;

  std::mutex mutex_;
  std::vector<std::shared_ptr<Ring>> added_;
  std::vector<const Ring*> removed_;
  std::atomic<bool> changed_ = false;

  // Of the executor's thread.
  std::unordered_map<const Ring*, std::shared_ptr<Ring>> all_;
  std::vector<Known> awake_;
  Ticks listened_ = 0;
  Ticks taken_ = 0;            // when something was taken last
  int client_processor_ = -1;  // whose client was there then
  int quick_ = 0;              // so many in a row came soon after the one before
  StepAside step_aside_;
};

}  // namespace eagle::server
