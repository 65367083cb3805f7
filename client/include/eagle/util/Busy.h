// Busy: a non-blocking guard for an object that is for one caller at a time.
#pragma once

#include <atomic>

namespace eagle::util {

// An atomic flag, so that it holds whatever the threads are and whoever schedules them. Nobody ever waits for
// it.
class Busy {
public:
  // Whether the caller got in; if so it must leave, from any thread. A re-entrant call of the same thread
  // does not get in either.
  bool enter() { return !flag_.exchange(true, std::memory_order_acquire); }
  void leave() { flag_.store(false, std::memory_order_release); }
  [[nodiscard]] bool busy() const { return flag_.load(std::memory_order_acquire); }

  // In for as long as it lives, if `entered()`.
  class Guard {
  public:
    explicit Guard(Busy& busy) : busy_(busy), entered_(busy.enter()) {}
    ~Guard() {
      if (entered_) busy_.leave();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    [[nodiscard]] bool entered() const { return entered_; }

  private:
    Busy& busy_;
    bool entered_;
  };

private:
  std::atomic<bool> flag_ = false;
};

}  // namespace eagle::util
