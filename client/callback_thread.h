// CallbackThread: where a session's host nodes run when no thread of the caller waits for their launch.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace eagle {

// One thread, started when first needed; so no two callables run at once. Ends after what is queued.
class CallbackThread {
public:
  CallbackThread() = default;
  ~CallbackThread();
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;

  // Runs `call` there and returns when it has; what it throws is thrown here.
  void run(const std::function<void()>& call);

private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace eagle
