#include "server/work_pool.h"

#include <string>
#include <utility>

namespace eagle::server {

WorkPool::WorkPool(int threads, std::size_t capacity, const char* key) : capacity_(capacity), key_(key) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

WorkPool::~WorkPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  threads_.clear();
}

Status WorkPool::submit(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.size() >= capacity_) {
      return {Reason::quota, "the daemon has " + std::to_string(capacity_) +
                                 " requests of this kind waiting, which is its limit (" + key_ +
                                 "); try again later"};
    }
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
  return {};
}

void WorkPool::work() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace eagle::server
