// CallbackThread: where a session's host nodes run when no thread of the caller waits for their launch.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace eagle {

// One thread, started when first needed; so no two callables run at once, but for one that a callable waits
// for. Ends after what is queued.
class CallbackThread {
public:
  CallbackThread() = default;
  ~CallbackThread();
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;

  // Runs `call` there and returns when it has; what it throws is thrown here. On the thread itself, in place.
  void run(const std::function<void()>& call);

  // Whether this is the thread, or one that stands in for it.
  [[nodiscard]] bool is_this_thread() const;
  // While it lives, the thread that made it stands in for the one which waits for it.
  class Deputy {
  public:
    explicit Deputy(const CallbackThread& callbacks);
    ~Deputy();
    Deputy(const Deputy&) = delete;
    Deputy& operator=(const Deputy&) = delete;

  private:
    const CallbackThread* const before_;
  };

private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace eagle
