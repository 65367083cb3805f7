// LocalPlanes: the planes of a session in this process, by id. Thread-safe. For the local_*.cpp files.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "eagle/client/array.h"

namespace eagle {

class LocalPlanes {
public:
  struct Totals {
    std::uint64_t planes = 0;
    std::uint64_t bytes = 0;
  };
  std::uint64_t enter(const std::shared_ptr<Buffer>& buffer) {
    const std::scoped_lock lock(mutex_);
    buffers_[++last_] = buffer;
    totals_.planes += 1;
    totals_.bytes += buffer->bytes();
    return last_;
  }
  // In a forked child nobody asks any more, and a thread may have held the mutex that the child does not
  // have.
  void leave(std::uint64_t id, std::uint64_t bytes) {
    if (::getpid() != owner_) return;
    const std::scoped_lock lock(mutex_);
    buffers_.erase(id);
    totals_.planes -= 1;
    totals_.bytes -= bytes;
  }
  std::shared_ptr<Buffer> find(std::uint64_t id) const {
    const std::scoped_lock lock(mutex_);
    const auto it = buffers_.find(id);
    return it == buffers_.end() ? nullptr : it->second.lock();
  }
  std::vector<std::shared_ptr<Buffer>> all() const {
    std::vector<std::shared_ptr<Buffer>> found;  // goes after the lock: the last owner of one calls `leave`
    const std::scoped_lock lock(mutex_);
    for (const auto& [id, buffer] : buffers_) found.push_back(buffer.lock());
    std::erase(found, nullptr);
    return found;
  }
  // Of the arrays that are made, whatever became of them.
  std::uint64_t next_number() { return numbers_.fetch_add(1, std::memory_order_relaxed); }
  Totals totals() const {
    const std::scoped_lock lock(mutex_);
    return totals_;
  }

private:
  const pid_t owner_ = ::getpid();
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::weak_ptr<Buffer>> buffers_;
  std::uint64_t last_ = 0;
  Totals totals_;
  std::atomic<std::uint64_t> numbers_ = 0;
};

}  // namespace eagle
