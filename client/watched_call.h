// The calls that may take long, and what stops them. For the .cpp files of this folder only.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/idle_queues.h"
#include "client/remote_connection.h"
#include "eagle/v1/service.grpc.pb.h"
#include "proto/rpc_error.h"

namespace eagle {

// How often a waiting call looks whether its caller wants it to stop. Its end wakes it at once.
constexpr milliseconds look_interval{4};
// How often the daemon is asked again to stop what has not stopped.
constexpr milliseconds repeat_interval{100};
// How long a wish to stop waits for a host call that it can go with.
constexpr milliseconds host_call_grace{100};

// What the caller of a call that may take long wants: it may stop it, or its time may be over. The daemon is
// asked to stop, once, and the call then ends by itself, so that nothing computes on the caller's arrays any
// more when it returns; only where the daemon does not react is it given up. For the thread that waits.
class StopWatch {
public:
  enum class Stop { none, cancelled, deadline, closed };

  StopWatch(Connection& connection, std::uint64_t launch_id, const std::optional<milliseconds>& timeout,
            const std::shared_ptr<std::atomic<bool>>& cancel)
      : connection_(connection), launch_id_(launch_id) {
    watch(timeout, cancel);
  }

  // From now on this is what the caller's wish to stop is looked for in.
  void watch(const std::optional<milliseconds>& timeout, const std::shared_ptr<std::atomic<bool>>& cancel) {
    deadline_ = timeout ? std::optional(Clock::now() + *timeout) : std::nullopt;
    cancel_ = cancel;
  }
  // Whom to tell that this thread waits (LaunchOptions::waiting; may be empty); it outlives the wait.
  void tell(const std::function<void()>& waiting) { waiting_ = waiting ? &waiting : nullptr; }
  void tell_waiting() const {
    if (waiting_ != nullptr) (*waiting_)();
  }
  // From here on a wish to stop waits for the next host call, whose reply tells the daemon; where none comes
  // for a while, the daemon is asked as ever.
  void go_with_replies() { grace_ = host_call_grace; }

  // Whether the caller wants to stop: asks the daemon to. False: it did not react, give up.
  bool look() {
    tell_waiting();
    if (drop_at_ && Clock::now() >= *drop_at_) given_up_ = true;
    if (given_up_) return false;
    if (stop_ != Stop::none) return ask_again();
    const Stop wanted = wish();
    return wanted == Stop::none || ask(wanted);
  }
  // The same where the daemon is about to hear from the caller anyway. True: tell it now that he wants to
  // stop.
  bool note() {
    if (stop_ == Stop::none) stop_ = wish();
    if (stop_ == Stop::none) return false;
    asked_ = Clock::now();
    if (!drop_at_) drop_at_ = asked_ + connection_.timeout;
    return true;
  }
  // The caller wants to stop, and said so in passing.
  bool ask_to_cancel() { return stop_ != Stop::none || ask(Stop::cancelled); }

  [[nodiscard]] Stop stop() const { return stop_; }

  // The outcome of the whole call; a stop that the caller asked for is told in its words.
  [[nodiscard]] Status in_words(const Status& outcome) const {
    if (!outcome.ok()) connection_.note_failure();
    if (outcome.reason() != Reason::cancelled || stop_ == Stop::none) return outcome;
    const std::string far =
        given_up_ ? "the daemon does not react, and how far it came is not known" : outcome.message();
    if (stop_ == Stop::deadline) return {Reason::deadline, "the timeout passed; " + far};
    return {Reason::cancelled, far};
  }

private:
  // What stops the call, if anything.
  [[nodiscard]] Stop wish() const {
    if (connection_.state.closed()) return Stop::closed;
    if (cancel_ && cancel_->load(std::memory_order_relaxed)) return Stop::cancelled;
    if (deadline_ && Clock::now() >= *deadline_) return Stop::deadline;
    return Stop::none;
  }

  bool ask(Stop why) {
    stop_ = why;
    drop_at_ = Clock::now() + connection_.timeout + grace_;
    if (grace_ == milliseconds(0)) return send_cancel();
    asked_ = Clock::now() + grace_ - repeat_interval;  // as if it had been, so that it is after the grace
    return true;
  }

  // A cancel may have overtaken the call itself, and then found nothing to stop; and a daemon that is busy
  // may not have answered.
  bool ask_again() { return Clock::now() - asked_ < repeat_interval || send_cancel(); }

  // Whether it is heard or not: a daemon that is busy may hear the next one. Where there is none any more,
  // the call ends by itself.
  bool send_cancel() {
    v1::CancelRequest request;
    request.set_launch_id(launch_id_);
    static_cast<void>(connection_.tidy(&RemoteLink::Stubs::graphs, &v1::Graphs::Stub::Cancel, request));
    asked_ = Clock::now();
    return true;
  }

  Connection& connection_;
  std::uint64_t launch_id_;
  std::shared_ptr<std::atomic<bool>> cancel_;
  const std::function<void()>* waiting_ = nullptr;
  std::optional<Clock::time_point> deadline_;
  std::optional<Clock::time_point> drop_at_;
  Stop stop_ = Stop::none;
  Clock::time_point asked_;
  milliseconds grace_{0};
  bool given_up_ = false;
};

// Asynchronous operations of one gRPC call, waited for one by one, while the caller's wish to stop is looked
// at.
class WatchedCall {
public:
  using Stop = StopWatch::Stop;

  WatchedCall(Connection& connection, std::uint64_t launch_id, const std::optional<milliseconds>& timeout,
              const std::shared_ptr<std::atomic<bool>>& cancel)
      : connection_(connection), link_(connection.link()), watch_(connection, launch_id, timeout, cancel) {
    connection.prepare(context);
  }
  // Waits for what is still under way.
  ~WatchedCall() {
    void* done = nullptr;
    bool ok = false;
    for (; under_way_ > 0; --under_way_) static_cast<void>(queue_->Next(&done, &ok));
    IdleQueues::give_back(std::move(queue_));
  }
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  grpc::ClientContext context;

  // Over which it goes.
  [[nodiscard]] const RemoteLink& link() const { return *link_; }
  [[nodiscard]] RemoteLink::Stubs& rpc() const { return link_->rpc(); }

  // For each operation that is started: where it ends, and by which it is known.
  [[nodiscard]] grpc::CompletionQueue* queue() { return queue_.get(); }
  void* tag() {
    ++under_way_;
    return nullptr;
  }

  // The end of the operation that was just started; what gRPC says about it.
  bool wait() {
    void* done = nullptr;
    bool ok = false;
    if (!std::exchange(has_waited_, true)) watch_.tell_waiting();
    while (queue_->AsyncNext(&done, &ok, std::chrono::system_clock::now() + look_interval) ==
           grpc::CompletionQueue::TIMEOUT) {
      look();
    }
    --under_way_;
    return ok;
  }

  void look() { keep(watch_.look()); }
  [[nodiscard]] bool note() { return watch_.note(); }
  void ask_to_cancel() { keep(watch_.ask_to_cancel()); }
  void go_with_replies() { watch_.go_with_replies(); }
  // For transfers that the call itself makes: whether the caller wants it to go on.
  [[nodiscard]] TransferProgress transfers() {
    return [this](std::uint64_t, std::uint64_t) {
      transfer_stopped_ = watch_.note();
      return !transfer_stopped_;
    };
  }
  // The same for what a callable has stored: a wish to stop that it brought about itself leaves that whole.
  [[nodiscard]] TransferProgress last_transfers() { return watch_.note() ? TransferProgress() : transfers(); }
  void watch(const std::optional<milliseconds>& timeout, const std::shared_ptr<std::atomic<bool>>& cancel) {
    watch_.watch(timeout, cancel);
  }
  // As StopWatch's, from the next wait on.
  void tell(const std::function<void()>& waiting) {
    watch_.tell(waiting);
    has_waited_ = false;
  }
  [[nodiscard]] Stop stop() const { return watch_.stop(); }

  [[nodiscard]] Status outcome(std::string_view operation, const grpc::Status& status) const {
    const bool by_us = watch_.stop() != Stop::none && Connection::came_too_late(status, context);
    const Status said = by_us ? Status(Reason::cancelled, status.error_message())
                              : connection_.outcome(operation, *link_, status, context);
    // Such a transfer was part of a host call, which the daemon only knows to have failed.
    const bool by_transfer = transfer_stopped_ && said.reason() == Reason::host_call_failed;
    return watch_.in_words(by_transfer ? Status(Reason::cancelled, said.message()) : said);
  }

private:
  // Drops the call where the daemon does not react.
  void keep(bool reacts) {
    if (!reacts) context.TryCancel();
  }

  Connection& connection_;
  const std::shared_ptr<RemoteLink> link_;
  std::unique_ptr<grpc::CompletionQueue> queue_ = IdleQueues::take();
  int under_way_ = 0;
  StopWatch watch_;
  bool transfer_stopped_ = false;
  bool has_waited_ = false;
};

// The launch of a graph with host nodes: a stream on which the daemon asks for host calls until it has the
// report or an error. Dropped before its end, it stops the launch.
class Conversation {
public:
  Conversation(Connection& connection, const v1::LaunchRequest& request, const LaunchOptions& options)
      : call(connection, request.launch_id(), options.timeout, options.cancel),
        stream_(call.rpc().graphs.AsyncLaunchWithCalls(&call.context, call.queue(), call.tag())) {
    call.tell(options.waiting);
    going_ = call.wait();
    *said_.mutable_launch() = request;
    going_ = going_ && write();
  }
  ~Conversation() {
    if (ended_) return;
    call.context.TryCancel();
    grpc::Status status;
    stream_->Finish(&status, call.tag());
    call.wait();
  }

  // Once.
  grpc::Status run(const std::function<Status(std::uint32_t)>& host_call, v1::LaunchReport& report) {
    v1::LaunchServerMessage heard;
    while (going_) {
      stream_->Read(&heard, call.tag());
      if (!call.wait()) break;
      if (heard.has_report()) {
        report = std::move(*heard.mutable_report());
      } else {
        answer(heard.call(), host_call);
      }
    }
    grpc::Status status;
    ended_ = true;
    stream_->Finish(&status, call.tag());
    call.wait();
    return status;
  }

private:
  bool write() {
    stream_->Write(said_, call.tag());
    return call.wait();
  }

  // A launch that was asked to stop waits for no reply. A wish that the callable itself brought about goes
  // with its reply: the node has done its part.
  void answer(const v1::HostCallRequest& request, const std::function<Status(std::uint32_t)>& host_call) {
    if (call.stop() != WatchedCall::Stop::none) return;
    const Status called = host_call(request.call());
    v1::HostCallReply& reply = *said_.mutable_reply();
    reply.set_cancel(call.note());
    reply.set_sequence(request.sequence());
    reply.set_ok(called.ok());
    reply.set_error(rpc::wire_message(called.message()));
    going_ = write();
  }

public:
  WatchedCall call;

private:
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::LaunchClientMessage, v1::LaunchServerMessage>> stream_;
  v1::LaunchClientMessage said_;
  bool going_ = false;
  bool ended_ = false;
};

}  // namespace eagle
