#include "interruptible.h"

#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/process.h"

namespace eagle::python {
namespace {

// threading.main_thread, looked up on import; never released.
nb::handle main_thread_function;
// getsignal and SIGINT of the module _signal, likewise.
nb::handle getsignal, sigint;
// What Python had for SIGINT when our handler was put before it: compared only, and kept so that nothing else
// gets its address.
nb::handle handler_behind;

// ---- Ctrl-C

// What the handler reads. It may run in any thread, so a watch that ends waits for it.
std::atomic<std::atomic<bool>*> interrupt_flag = nullptr;
std::atomic<int> handlers_running = 0;
std::atomic<std::uint64_t> interrupts = 0;
struct sigaction chained = {};
static_assert(std::atomic<bool>::is_always_lock_free &&
              std::atomic<std::atomic<bool>*>::is_always_lock_free &&
              std::atomic<std::uint64_t>::is_always_lock_free);

void on_interrupt(int number, siginfo_t* info, void* context) {
  handlers_running.fetch_add(1);
  interrupts.fetch_add(1);
  if (std::atomic<bool>* flag = interrupt_flag.load()) flag->store(true);
  if ((chained.sa_flags & SA_SIGINFO) != 0) {
    chained.sa_sigaction(number, info, context);
  } else {
    chained.sa_handler(number);
  }
  handlers_running.fetch_sub(1);
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_interrupt;
}

bool is_function(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

// ---- the end of the interpreter

// How long the end waits for calls to stop: a callable of a host node may take any time.
constexpr std::chrono::seconds longest_end{2};

// Entered and left with the GIL held, so that the mutex is free in the child of a fork.
struct Registry {
  struct Entry {
    const RunningCall* call;
    const Host* host;
    std::atomic<bool>* cancel;
  };
  std::mutex mutex;
  std::condition_variable left;
  std::vector<Entry> entries;
  pid_t process = this_process();
  std::atomic<bool> ending = false;

  // Calls of threads that a fork did not bring along never leave.
  void forget_other_processes() {
    if (process == this_process()) return;
    entries.clear();
    process = this_process();
  }
};
// Never destroyed: threads may be in a call while the process ends.
Registry& registry() {
  static Registry& calls = *new Registry;
  return calls;
}

void end_calls() {
  Registry& calls = registry();
  const Released released;
  std::unique_lock lock(calls.mutex);
  calls.forget_other_processes();
  calls.ending = true;
  for (const Registry::Entry& entry : calls.entries) entry.cancel->store(true);
  calls.left.wait_for(lock, longest_end, [&] { return calls.entries.empty(); });
}

// Ends the thread without a word, as Python does with those that still run when it ends.
[[noreturn]] void raise_end() {
  PyErr_SetString(PyExc_SystemExit, "the interpreter is ending");
  throw nb::python_error();
}

}  // namespace

// Only a fork makes another thread the main one. Threads may look at once where Python has no GIL: what they
// would remember is the same.
bool in_main_thread() {
  static std::atomic<pid_t> process = 0;
  static std::atomic<unsigned long> main_thread = 0;
  if (process != this_process()) {
    main_thread = nb::cast<unsigned long>(main_thread_function().attr("ident"));
    process = this_process();
  }
  return main_thread == PyThread_get_thread_ident();
}

RunningCall::RunningCall(const Session& session, std::shared_ptr<std::atomic<bool>> cancel)
    : host_(session.host().get()), cancel_(std::move(cancel)) {
  Registry& calls = registry();
  if (calls.ending && !in_main_thread()) raise_end();
  const std::scoped_lock lock(calls.mutex);
  calls.forget_other_processes();
  calls.entries.push_back({this, host_, cancel_.get()});
}

RunningCall::~RunningCall() {
  Registry& calls = registry();
  {
    const std::scoped_lock lock(calls.mutex);
    std::erase_if(calls.entries, [this](const Registry::Entry& entry) { return entry.call == this; });
  }
  calls.left.notify_all();
}

void RunningCall::raise_stop() const {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (cancel_->load() && registry().ending && !in_main_thread()) raise_end();
}

void RunningCall::stop_calls_of(const Session& session) {
  Registry& calls = registry();
  const std::scoped_lock lock(calls.mutex);
  for (const Registry::Entry& entry : calls.entries) {
    if (entry.host == session.host().get()) entry.cancel->store(true);
  }
}

InterruptWatch::InterruptWatch(std::atomic<bool>& cancel)
    : cancel_(cancel), wanted_(in_main_thread()), seen_(interrupts.load()) {
  if (!wanted_) return;
  const nb::object now = nb::steal(PyObject_CallOneArg(getsignal.ptr(), sigint.ptr()));
  if (!now.is_valid()) throw nb::python_error();
  if (now.is(handler_behind)) return;
  begin();
  handler_behind.dec_ref();
  handler_behind = nb::object(now).release();
}

void InterruptWatch::begin() {
  if (!wanted_ || std::exchange(begun_, true)) return;
  watch();
  heed();
}

void InterruptWatch::watch() {
  struct sigaction current = {};
  if (::sigaction(SIGINT, nullptr, &current) != 0 || !is_function(current)) return;
  if (!is_ours(current)) {
    chained = current;
    current.sa_sigaction = on_interrupt;
    current.sa_flags |= SA_SIGINFO;
    if (::sigaction(SIGINT, &current, nullptr) != 0) return;
  }
  interrupt_flag = &cancel_;
  watching_ = true;
}

void InterruptWatch::heed() {
  if (interrupts.load() != seen_) cancel_.store(true);
}

void InterruptWatch::pause() {
  if (std::exchange(watching_, false)) {
    interrupt_flag = nullptr;
    while (handlers_running != 0) ::sched_yield();
  } else if (wanted_ && !begun_) {
    heed();
  }
}

void InterruptWatch::resume() {
  if (!wanted_) return;
  seen_ = interrupts.load();
  if (begun_) watch();
}

void InterruptWatch::check() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// ---- the thread beside the main one

namespace {

class SideThread {
public:
  // Null where the system has no thread left. Never destroyed, and its thread never joined: it sleeps as the
  // process ends, or ends with it. The child of a fork has none of its parent's threads, and makes its own.
  static SideThread* of_process() {
    static SideThread* thread = nullptr;
    if (thread != nullptr && thread->process_ == this_process()) return thread;
    auto made = std::make_unique<SideThread>();
    try {
      std::thread([made = made.get()] { made->serve(); }).detach();
    } catch (const std::system_error&) {
      return nullptr;
    }
    return thread = made.release();
  }

  // Nothing where it is at a call.
  std::optional<std::future<void>> begin(std::function<void()>& call) {
    const std::scoped_lock lock(mutex_);
    if (call_) return {};
    call_ = std::move(call);
    done_ = {};
    given_.notify_one();
    return done_.get_future();
  }

private:
  // It is free for the next call before anybody hears of the end of this one.
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      given_.wait(lock, [this] { return call_ != nullptr; });
      lock.unlock();
      std::exception_ptr thrown;
      try {
        call_();
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      call_ = nullptr;
      std::promise<void> done = std::move(done_);
      lock.unlock();
      if (thrown) {
        done.set_exception(std::move(thrown));
      } else {
        done.set_value();
      }
      lock.lock();
    }
  }

  const pid_t process_ = this_process();
  std::mutex mutex_;
  std::condition_variable given_;
  std::function<void()> call_;  // empty: it has none. Of its thread while that is at it
  std::promise<void> done_;
};

}  // namespace

std::future<void> begin_beside(std::function<void()> call) {
  if (SideThread* const kept = SideThread::of_process()) {
    if (auto begun = kept->begin(call)) return *std::move(begun);
  }
  return std::async(std::launch::async, std::move(call));
}

void heed_signals(Released& released, std::atomic<bool>& cancel, std::optional<nb::python_error>& raised) {
  if (raised) return;
  const Released::Interval gil(released);
  if (PyErr_CheckSignals() == 0) return;
  raised.emplace();
  cancel.store(true);
}

void bind_interrupts() {
  main_thread_function = nb::object(nb::module_::import_("threading").attr("main_thread")).release();
  // Below `signal`, which makes enumerations of what it finds: that takes longer than a launch.
  const nb::object signals = nb::module_::import_("_signal");
  getsignal = nb::object(signals.attr("getsignal")).release();
  sigint = nb::object(signals.attr("SIGINT")).release();
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(end_calls));
}

}  // namespace eagle::python
