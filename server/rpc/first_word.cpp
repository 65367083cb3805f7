#include "server/rpc/first_word.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/support/time.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

namespace eagle::server {

using Clock = std::chrono::steady_clock;

struct FirstWords::State : std::enable_shared_from_this<FirstWords::State> {
  explicit State(std::chrono::milliseconds time) : patience(time) {}
  void set_alarm();  // with the lock held
  void look();

  const std::chrono::milliseconds patience;
  std::mutex mutex;
  std::list<Waiting> waiting;  // by their time, which is the order of their coming
  std::optional<grpc::Alarm> alarm;
};

// For the first of those that wait.
void FirstWords::State::set_alarm() {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(waiting.front().until - Clock::now());
  const gpr_timespec at =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_millis(std::max<std::int64_t>(left.count(), 0), GPR_TIMESPAN));
  // A new one each time: an alarm keeps its function, which must not be replaced while it runs.
  alarm.emplace().Set(at, [weak = weak_from_this()](bool expired) {
    const auto self = weak.lock();
    if (self && expired) self->look();
  });
}

void FirstWords::State::look() {
  std::list<Waiting> late;
  {
    const std::lock_guard lock(mutex);
    const auto now = Clock::now();
    const auto in_time =
        std::find_if(waiting.begin(), waiting.end(), [now](const Waiting& one) { return one.until > now; });
    late.splice(late.end(), waiting, waiting.begin(), in_time);
    for (const Waiting& one : late) one.call->is_ = FirstWord::Is::silent;
    if (waiting.empty()) {
      alarm.reset();
    } else {
      set_alarm();
    }
  }
  for (const Waiting& one : late) one.silent();
}

FirstWords::FirstWords(std::chrono::milliseconds patience) : state_(std::make_shared<State>(patience)) {}

void FirstWord::await(const FirstWords& all, std::function<void()> silent) {
  all_ = all.state_;
  std::list<FirstWords::Waiting> mine;
  mine.push_back({{}, std::move(silent), this});
  const std::lock_guard lock(all_->mutex);
  mine.front().until = Clock::now() + all_->patience;
  all_->waiting.splice(all_->waiting.end(), mine);
  place_ = std::prev(all_->waiting.end());
  is_ = Is::awaited;
  if (!all_->alarm) all_->set_alarm();
}

bool FirstWord::came() {
  if (!all_) return true;
  std::list<FirstWords::Waiting> mine;  // let go without the lock
  const std::lock_guard lock(all_->mutex);
  if (is_ == Is::awaited) {
    mine.splice(mine.end(), all_->waiting, place_);
    is_ = Is::heard;
  }
  return is_ != Is::silent;
}

}  // namespace eagle::server
