// WorkPool: a few threads and a bounded queue, for work that takes long and is not a launch: builds,
// memory, pictures, the end of a session.
//
// Whoever hands work in takes turns with the others, a piece each, however many it has waiting: one with slow
// builds makes nobody wait for all of them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
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

  // `whose`: a tenant's name; empty: the daemon's own. QUOTA, with the pool's key, when `capacity` tasks wait
  // already. Of one tenant half of them may wait, and no less than a sixteenth, whatever others have waiting.
  // All threads but one, of several, may be at work for one tenant.
  Status submit(std::function<void()> task, const std::string& whose = {});

private:
  using Task = std::function<void()>;
  struct Line {
    std::string whose;
    std::deque<Task> tasks;
  };
  void work();
  [[nodiscard]] Status admits(const std::string& whose, std::size_t waiting) const;
  // With the lock held: the line whose turn it is; the end: none may go on.
  [[nodiscard]] std::list<Line>::iterator next();

  const std::size_t capacity_;
  const std::size_t threads_of_one_;
  const char* const key_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::list<Line> lines_;  // none is empty; the one that had its turn goes to the end
  std::size_t waiting_ = 0;
  std::map<std::string, std::size_t> running_;
  bool ending_ = false;
  std::vector<std::jthread> threads_;  // last: ends before what it uses
};

}  // namespace eagle::server
