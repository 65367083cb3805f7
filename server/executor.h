// Executor: the one thread that runs launches and runs, and so the owner of the OpenMP team.
//
// Jobs take turns in the order of their arrival. A job that must wait for its client leaves the thread
// (`parked`) and is queued again by `resume`, so that a slow client holds nobody up; a long one gives way
// between its passes (`again`).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/base/status.h"

namespace eagle::server {

class Job {
public:
  enum class Next {
    again,   // to the back of the queue
    parked,  // until somebody resumes it; may have happened already
    done,
  };
  virtual ~Job() = default;
  // Does a piece of work. Called by the executor's thread only, never after `done`.
  virtual Next advance() = 0;
  // Makes the job end soon, from any thread, at any time, more than once; a parked one resumes itself.
  virtual void cancel() = 0;
};

// Thread-safe.
class Executor {
public:
  explicit Executor(std::size_t capacity);
  ~Executor();  // after the piece in progress; jobs that are left are dropped
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // QUOTA (jobs) when `capacity` jobs are queued, running or parked.
  Status submit(std::shared_ptr<Job> job);
  // Queues a parked job. Never refused: the job was admitted.
  void resume(std::shared_ptr<Job> job);

  [[nodiscard]] std::size_t admitted() const;
  // Returns when no job is left, or when `stop` becomes true (see `wake`).
  void wait_until_idle(const std::atomic<bool>& stop);
  // Makes `wait_until_idle` look at its flag again.
  void wake();

private:
  void work();

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<std::shared_ptr<Job>> queue_;
  std::size_t admitted_ = 0;
  bool ending_ = false;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace eagle::server
