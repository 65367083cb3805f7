#include "client/callback_thread.h"

#include <future>
#include <memory>
#include <utility>

namespace eagle {
namespace {

thread_local const CallbackThread* current = nullptr;

}  // namespace

CallbackThread::Deputy::Deputy(const CallbackThread& callbacks)
    : before_(std::exchange(current, &callbacks)) {}
CallbackThread::Deputy::~Deputy() { current = before_; }

bool CallbackThread::is_this_thread() const { return current == this; }

CallbackThread::~CallbackThread() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CallbackThread::run(const std::function<void()>& call) {
  if (is_this_thread()) return call();
  auto task = std::make_shared<std::packaged_task<void()>>(call);
  std::future<void> done = task->get_future();
  {
    const std::scoped_lock lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
    waiting_.emplace_back([task] { (*task)(); });
  }
  changed_.notify_all();
  done.get();
}

void CallbackThread::serve() {
  const Deputy self(*this);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::function<void()> next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    next();
    next = nullptr;
    lock.lock();
  }
}

}  // namespace eagle
