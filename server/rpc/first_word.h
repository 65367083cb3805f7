// FirstWord: how long the client of a stream may say nothing at all.
// For the .cpp files of this folder only: it brings gRPC's headers.
#pragma once

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/support/time.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace eagle::server {

// Of one stream. Thread-safe.
class FirstWord {
public:
  // Once. `silent` is called after `timeout` on a thread of gRPC's, unless `came` was before; what it holds
  // is let go then or soon after.
  void await(std::chrono::milliseconds timeout, std::function<void()> silent) {
    const gpr_timespec until =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(timeout.count(), GPR_TIMESPAN));
    // Let go by hand: the alarm keeps its function, and what that holds may be the owner of the alarm.
    awaited_ = true;
    alarm_.Set(until, [state = state_,
                       once = std::make_shared<std::function<void()>>(std::move(silent))](bool expired) {
      const std::function<void()> call = std::exchange(*once, nullptr);
      State waiting = State::waiting;
      if (expired && state->compare_exchange_strong(waiting, State::silent)) call();
    });
  }
  // The client has spoken, or left. False: too late, the stream is being ended.
  bool came() {
    State waiting = State::waiting;
    if (state_->compare_exchange_strong(waiting, State::spoken) && awaited_) alarm_.Cancel();
    return state_->load() == State::spoken;
  }

private:
  enum class State : unsigned char { waiting, spoken, silent };
  const std::shared_ptr<std::atomic<State>> state_ = std::make_shared<std::atomic<State>>(State::waiting);
  bool awaited_ = false;  // before gRPC knows of the stream, and so before anything else is called
  grpc::Alarm alarm_;
};

}  // namespace eagle::server
