// WorkPool: a few threads and a bounded queue, for work that takes long and is not a launch: builds,
// memory, pictures, the end of a session.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/status.h"

namespace eagle::server {

// Thread-safe. Every accepted task runs, also those that wait when the pool goes: they should then look
// whether their work is still wanted.
class WorkPool {
public:
  WorkPool(int threads, std::size_t capacity, const char* key);
  ~WorkPool();  // joins
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // QUOTA, with the pool's key, when `capacity` tasks wait already.
  Status submit(std::function<void()> task);

private:
  void work();

  const std::size_t capacity_;
  const char* const key_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::vector<std::jthread> threads_;  // last: ends before what it uses
};

}  // namespace eagle::server
