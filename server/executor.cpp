#include "server/executor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/ring/rings.h"

namespace eagle::server {

Executor::Executor(std::size_t capacity)
    : capacity_(capacity), rings_(std::make_shared<Rings>()), thread_([this] { work(); }) {}

Executor::~Executor() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  rings_->notify();
}

Status Executor::submit(std::shared_ptr<Job> job) {
  {
    const std::lock_guard lock(mutex_);
    if (admitted_ >= capacity_) {
      return {Reason::quota, "the daemon has " + std::to_string(capacity_) +
                                 " launches and runs in hand, which is its limit (jobs); try again later"};
    }
    ++admitted_;
    queue_.push_back(std::move(job));
  }
  rings_->notify();
  return {};
}

void Executor::resume(std::shared_ptr<Job> job) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(job));
  }
  rings_->notify();
}

void Executor::expedite(const std::shared_ptr<Job>& job) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(queue_.begin(), queue_.end(), job);
  if (running_ == job.get()) {
    // Its turn has not quite ended, even if it is queued again already: nobody else may touch it.
    hurried_ = true;
    if (found != queue_.end()) std::rotate(queue_.begin(), found, found + 1);
  } else if (found != queue_.end()) {
    queue_.erase(found);
    static_cast<void>(leaving_.submit([this, job] {
      static_cast<void>(job->advance());
      const std::lock_guard end(mutex_);
      finished();
    }));
  }
}

void Executor::discard(std::shared_ptr<void> remains) {
  static_cast<void>(reaper_.submit([remains = std::move(remains)]() mutable { remains.reset(); }));
}

std::size_t Executor::admitted() const {
  const std::lock_guard lock(mutex_);
  return admitted_;
}

void Executor::wait_until_idle(const std::atomic<bool>& stop) {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return admitted_ == 0 || stop; });
}

void Executor::wake() {
  const std::lock_guard lock(mutex_);
  idle_.notify_all();
}

void Executor::finished() {
  if (--admitted_ == 0) idle_.notify_all();
}

std::shared_ptr<Job> Executor::next() {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return nullptr;
  std::shared_ptr<Job> job = std::move(queue_.front());
  queue_.pop_front();
  running_ = job.get();
  hurried_ = false;
  return job;
}

bool Executor::nothing_to_do() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !ending_;
}

void Executor::run(std::shared_ptr<Job> job) {
  const Job::Next next = job->advance();
  if (next != Job::Next::again) job.reset();  // without the lock: its end may take others
  const std::lock_guard lock(mutex_);
  running_ = nullptr;
  if (next == Job::Next::again) {
    queue_.insert(hurried_ ? queue_.begin() : queue_.end(), std::move(job));
  } else if (next == Job::Next::done) {
    finished();
  }
}

void Executor::work() {
  for (;;) {
    static_cast<void>(rings_->visit());
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
    }
    if (std::shared_ptr<Job> job = next()) {
      run(std::move(job));
    } else {
      rings_->sleep([this] { return nothing_to_do(); });
    }
  }
}

}  // namespace eagle::server
