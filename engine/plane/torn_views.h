// TornViews: which bytes of a plane a launch left half written, so that nobody computes on them unknowingly.
//
// A launch that was cut short leaves what it writes in a state that is neither the old one nor the new one.
// Such views are marked here, and stay marked until somebody wrote all of them anew, or said that the bytes
// are fine as they are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/plane/view.h"

namespace eagle::plane {

// Whether writing all of `written` writes every byte of `view`, both of one plane. "No" where it is hard to
// tell: exact for views that lie side by side in memory, and for the same elements in another order.
bool covers(const View& written, const View& view);

// Of one plane; the `plane` of views is not looked at. Thread-safe.
class TornViews {
public:
  // More marks than this become one, over all bytes from the first to the last.
  static constexpr std::size_t most_marks = 64;

  struct Mark {
    std::uint64_t number = 0;  // never used again
    View view;
    std::string what;  // for people: "'x' of node 'increment'"
  };

  // A view without elements is not marked.
  void mark(View view, std::string what);
  // Without a lock: what a launch asks first.
  [[nodiscard]] bool any() const { return any_.load(std::memory_order_acquire); }
  [[nodiscard]] std::vector<Mark> marks() const;
  // Drops the marks of these numbers, where they are still there.
  void drop(std::span<const std::uint64_t> numbers);
  // Drops every mark that shares a byte with the view. How many there were.
  std::size_t accept(const View& view);

private:
  void join_all();

  mutable std::mutex mutex_;
  std::atomic<bool> any_ = false;
  std::uint64_t last_ = 0;
  std::vector<Mark> marks_;
};

}  // namespace eagle::plane
