// Executor: the one thread that runs launches and runs, and so the owner of the OpenMP team. Between jobs it
// looks at the rings of the sessions (ring/rings.h), and when there is nothing to do it sleeps there.
//
// Jobs take turns in the order of their arrival. A job that must wait for its client leaves the thread
// (`parked`) and is queued again by `resume`, so that a slow client holds nobody up; a long one gives way
// between its passes (`again`). Two more threads end the jobs that were cancelled before their turn came, and
// free what jobs leave behind: neither waits for what runs, nor holds it up.
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
#include "server/work_pool.h"

namespace eagle::server {

class Rings;

class Job {
public:
  enum class Next {
    again,   // to the back of the queue
    parked,  // until somebody resumes it; may have happened already
    done,
  };
  virtual ~Job() = default;
  // Does a piece of work. Called by one thread at a time, never after `done`: the executor's own, or for a
  // job that was cancelled another one, where it does nothing but end.
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
  // For a job that has been cancelled: if it is queued it ends at once, whatever runs; if it runs and gives
  // way, it is next. Any other is left alone.
  void expedite(const std::shared_ptr<Job>& job);
  // Drops the reference, on a thread that may take its time.
  void discard(std::shared_ptr<void> remains);

  // From which launches come, too.
  [[nodiscard]] const std::shared_ptr<Rings>& rings() const { return rings_; }

  [[nodiscard]] std::size_t admitted() const;
  // Returns when no job is left, or when `stop` becomes true (see `wake`).
  void wait_until_idle(const std::atomic<bool>& stop);
  // Makes `wait_until_idle` look at its flag again.
  void wake();

private:
  void work();
  void run(std::shared_ptr<Job> job);
  std::shared_ptr<Job> next();
  [[nodiscard]] bool nothing_to_do() const;
  void finished();  // with the lock held

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<std::shared_ptr<Job>> queue_;
  const Job* running_ = nullptr;
  bool hurried_ = false;  // the running one was expedited
  std::size_t admitted_ = 0;
  bool ending_ = false;
  const std::shared_ptr<Rings> rings_;
  // Last: they end before what they use.
  WorkPool reaper_{1, SIZE_MAX, "jobs"};   // what it holds is bounded by the jobs there are
  WorkPool leaving_{1, SIZE_MAX, "jobs"};  // likewise
  std::jthread thread_;
};

}  // namespace eagle::server
