// Future: the outcome of a call that goes on in a thread of its own.
//
//   eagle::Future<eagle::LaunchReport> launched = g.launch_async(100);
//   ...
//   if (!launched.wait_until(deadline)) launched.cancel();
//   StatusOr<LaunchReport> report = launched.wait();
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/status.h"

namespace eagle {

// Runs a function some time, in some thread.
using Executor = std::function<void(std::function<void()>)>;

namespace detail {
// A descriptor that becomes readable, once. -1 where the system has none left.
class Event {
public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void set() const;
  [[nodiscard]] int fd() const { return fd_; }

private:
  int fd_;
};
}  // namespace detail

// A handle: copies share the call. Thread-safe. The last one to go cancels the call and waits for it to end,
// so that nothing computes on the caller's arrays afterwards.
template <typename T>
class Future {
public:
  // `work` gets the flag that `cancel` sets.
  using Work = std::function<StatusOr<T>(const std::shared_ptr<std::atomic<bool>>& cancelled)>;
  explicit Future(Work work) : call_(std::make_shared<Call>(std::move(work))) {}

  [[nodiscard]] bool ready() const { return call_->outcome.ready(); }
  // The outcome, once it is there.
  StatusOr<T> wait() const { return *call_->outcome.wait(std::nullopt); }
  // The outcome, or nothing at the deadline.
  std::optional<StatusOr<T>> wait_until(std::chrono::steady_clock::time_point deadline) const {
    return call_->outcome.wait(deadline);
  }
  // Asks the call to stop; it ends with CANCELLED, or as it would have if it was about to end.
  void cancel() const { call_->cancelled->store(true); }
  // Has `executor` run `function` with the outcome; at once where that is there already.
  void then(Executor executor, std::function<void(const StatusOr<T>&)> function) const {
    call_->outcome.then(std::move(executor), std::move(function));
  }
  // Readable once the outcome is there, for poll and epoll; it lives as long as the future.
  [[nodiscard]] int fd() const { return call_->outcome.fd(); }

private:
  class Outcome {
  public:
    void set(StatusOr<T> value) {
      const auto shared = std::make_shared<const StatusOr<T>>(std::move(value));
      std::vector<std::pair<Executor, Then>> waiting;
      {
        const std::scoped_lock lock(mutex_);
        value_ = shared;
        waiting.swap(waiting_);
      }
      changed_.notify_all();
      event_.set();
      // The last handle may go in any of them, and this object with it.
      for (auto& [executor, function] : waiting) deliver(executor, function, shared);
    }
    [[nodiscard]] bool ready() const {
      const std::scoped_lock lock(mutex_);
      return value_ != nullptr;
    }
    std::optional<StatusOr<T>> wait(std::optional<std::chrono::steady_clock::time_point> deadline) const {
      std::unique_lock lock(mutex_);
      const auto there = [&] { return value_ != nullptr; };
      if (!deadline) changed_.wait(lock, there);
      if (deadline && !changed_.wait_until(lock, *deadline, there)) return std::nullopt;
      return *value_;
    }
    void then(Executor executor, std::function<void(const StatusOr<T>&)> function) {
      Value value;
      {
        const std::scoped_lock lock(mutex_);
        value = value_;
        if (!value) {
          waiting_.emplace_back(std::move(executor), std::move(function));
          return;
        }
      }
      deliver(executor, function, value);
    }
    [[nodiscard]] int fd() const { return event_.fd(); }

  private:
    using Then = std::function<void(const StatusOr<T>&)>;
    using Value = std::shared_ptr<const StatusOr<T>>;
    static void deliver(const Executor& executor, const Then& function, const Value& value) {
      executor([value, function] { function(*value); });
    }

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    Value value_;
    std::vector<std::pair<Executor, Then>> waiting_;
    detail::Event event_;
  };

  struct Call {
    explicit Call(Work work) : thread([this, run = std::move(work)] { outcome.set(run(cancelled)); }) {}
    ~Call() {
      cancelled->store(true);
      if (thread.get_id() == std::this_thread::get_id()) {
        thread.detach();  // the last handle went in a continuation, run by the call's own thread
      } else {
        thread.join();
      }
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
    Outcome outcome;
    std::thread thread;  // last: it uses the others
  };
  std::shared_ptr<Call> call_;
};

}  // namespace eagle
