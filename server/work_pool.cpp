#include "server/work_pool.h"

#include <algorithm>
#include <string>
#include <utility>

namespace eagle::server {

WorkPool::WorkPool(int threads, std::size_t capacity, const char* key)
    : capacity_(capacity), threads_of_one_(static_cast<std::size_t>(std::max(threads - 1, 1))), key_(key) {
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

Status WorkPool::admits(const std::string& whose, std::size_t waiting) const {
  const std::size_t most = std::max<std::size_t>(capacity_ / 2, 1);
  const std::size_t least = std::max<std::size_t>(capacity_ / 16, 1);
  if (!whose.empty() && waiting >= most) {
    return {Reason::quota, "tenant '" + whose + "' has " + std::to_string(waiting) +
                               " requests of this kind waiting, which is half of the daemon's limit (" +
                               key_ + "), and all that one tenant may have; try again later"};
  }
  if (waiting_ >= capacity_ && (whose.empty() || waiting >= least)) {
    return {Reason::quota, "the daemon has " + std::to_string(waiting_) +
                               " requests of this kind waiting, and " + std::to_string(capacity_) +
                               " is its limit (" + key_ + "); try again later"};
  }
  return {};
}

Status WorkPool::submit(Task task, const std::string& whose) {
  {
    const std::lock_guard lock(mutex_);
    auto line =
        std::find_if(lines_.begin(), lines_.end(), [&](const Line& one) { return one.whose == whose; });
    EAGLE_RETURN_IF_ERROR(admits(whose, line == lines_.end() ? 0 : line->tasks.size()));
    if (line == lines_.end()) line = lines_.insert(lines_.end(), Line{whose, {}});
    line->tasks.push_back(std::move(task));
    ++waiting_;
  }
  wake_.notify_one();
  return {};
}

std::list<WorkPool::Line>::iterator WorkPool::next() {
  return std::find_if(lines_.begin(), lines_.end(), [this](const Line& line) {
    const auto running = running_.find(line.whose);
    return line.whose.empty() || running == running_.end() || running->second < threads_of_one_;
  });
}

void WorkPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto line = lines_.end();
    wake_.wait(lock, [&] {
      line = next();
      return line != lines_.end() || (ending_ && lines_.empty());
    });
    if (line == lines_.end()) return;
    Task task = std::move(line->tasks.front());
    line->tasks.pop_front();
    --waiting_;
    const std::string whose = line->whose;
    if (line->tasks.empty()) {
      lines_.erase(line);
    } else {
      lines_.splice(lines_.end(), lines_, line);
    }
    ++running_[whose];
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes before its thread counts as free
    lock.lock();
    if (const auto running = running_.find(whose); --running->second == 0) running_.erase(running);
    wake_.notify_all();  // somebody of `whose` may go on now, or the pool has nothing left
  }
}

}  // namespace eagle::server
