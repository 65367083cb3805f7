// Busy: a non-blocking guard for an object that is for one caller at a time.
#pragma once

#include <atomic>
#include <string_view>

namespace eagle::util {

class Busy {
public:
  // Entered by at most one caller at a time; `entered()` says whether this one got in. A re-entrant call
  // of the same thread does not get in either.
  class Guard {
  public:
    explicit Guard(Busy& busy)
        : busy_(busy), entered_(!busy.flag_.exchange(true, std::memory_order_acquire)) {}
    ~Guard() {
      if (entered_) busy_.flag_.store(false, std::memory_order_release);
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
