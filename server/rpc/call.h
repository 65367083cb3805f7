// What the services share: how a call comes in, who calls, until when, and how a call with one request is
// answered, by another thread too.
// For the .cpp files of this folder only: it brings gRPC's headers.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/base/status.h"
#include "server/daemon.h"
#include "server/held_bytes.h"
#include "server/rpc/first_word.h"
#include "server/rpc/request.h"
#include "server/rpc/rpc_status.h"

namespace eagle::server {

// The session whose secret the call carries, or UNAUTHENTICATED.
StatusOr<std::shared_ptr<Session>> session_of(Daemon& daemon, const grpc::CallbackServerContext& context);

// The trace that the call belongs to: that of its metadata `traceparent`, else its session's.
TraceContext trace_of(const Session& session, const grpc::CallbackServerContext& context);

std::optional<std::chrono::steady_clock::time_point> deadline_of(const grpc::CallbackServerContext& context);

// A call as it comes in: gRPC has its headers, and no message yet. What it refers to outlives the call.
struct Arrival {
  Daemon& daemon;
  grpc::CallbackServerContext& context;
  const Method& method;
  const FirstWords& first_words;
};

// A call with one request, until that has come: gRPC receives none for a caller without a session, and none
// is parsed that is over the limits of its method. `Reactor` is gRPC's, and reads bytes. The object owns
// itself until gRPC has no more use for it; who speaks later holds it by shared_ptr.
template <typename Reactor>
class OneRequest : public Reactor, public std::enable_shared_from_this<OneRequest<Reactor>> {
public:
  static Reactor* begin(std::shared_ptr<OneRequest> made) {
    OneRequest& call = *made;
    call.self_ = std::move(made);
    call.receive();
    return &call;
  }

  [[nodiscard]] Daemon& daemon() const { return arrival_.daemon; }
  [[nodiscard]] grpc::CallbackServerContext& context() const { return arrival_.context; }
  // Once `answer` is called.
  [[nodiscard]] const std::shared_ptr<Session>& session() const { return session_; }

  // Called once when the call has ended and the request is gone; quick. Before `finish`.
  void afterwards(std::function<void()> handler) { afterwards_ = std::move(handler); }

protected:
  explicit OneRequest(const Arrival& arrival) : arrival_(arrival) {}

  // Where the request is to be.
  virtual google::protobuf::Message& request() = 0;
  // It is there.
  virtual void answer() = 0;
  // Ends the call. Instead of `answer`, or as those say who are asked to answer.
  virtual void fail(const Status& status) = 0;

private:
  void receive() {
    auto session = session_of(daemon(), context());
    if (!session.ok()) return fail(session.status());
    session_ = *std::move(session);
    this->StartRead(&bytes_);
    first_word_.await(arrival_.first_words, [self = self_] {
      OneRequest& call = *self;
      call.fail({Reason::deadline, call.arrival_.method.name +
                                       ": the request did not come whole for too long (first_word_timeout)"});
    });
  }

  void OnReadDone(bool ok) final {
    if (!first_word_.came()) return;
    const Status status =
        ok ? read(daemon(), session_->tenant().get(), arrival_.method, bytes_, request(), held_) : none();
    status.ok() ? answer() : fail(status);
  }

  [[nodiscard]] Status none() const {
    if (context().IsCancelled()) return {Reason::cancelled, "the client is gone"};
    return unreadable("a request of " + arrival_.method.name);
  }

  void OnDone() final {
    static_cast<void>(first_word_.came());
    const std::function<void()> afterwards = std::move(afterwards_);
    self_.reset();
    if (afterwards) afterwards();
  }

  std::function<void()> afterwards_;
  const Arrival arrival_;
  std::shared_ptr<OneRequest> self_;
  std::shared_ptr<Session> session_;
  FirstWord first_word_;
  grpc::ByteBuffer bytes_;
  HeldBytes held_;  // for the request
};

// A call with one request and one reply, which some thread finishes. Who holds a shared_ptr longer than gRPC
// does holds a finished call.
class PendingCall : public OneRequest<grpc::ServerReadReactor<grpc::ByteBuffer>> {
public:
  // Once. The reply message must be complete, and is gone afterwards.
  void finish(const Status& status);
  // `handler` is called if the client gives up, also if it has; not after `finish`.
  void when_cancelled(std::function<void()> handler);
  [[nodiscard]] bool cancelled() const { return context().IsCancelled(); }

  [[nodiscard]] std::shared_ptr<PendingCall> shared() {
    return std::static_pointer_cast<PendingCall>(shared_from_this());
  }
  [[nodiscard]] TraceContext trace() const { return trace_of(*session(), context()); }

protected:
  using OneRequest::OneRequest;

private:
  void fail(const Status& status) final { finish(status); }
  void OnCancel() final;

  std::mutex mutex_;
  bool cancelled_ = false;
  std::function<void()> handler_;
};

// Answers a call in this thread; `work` is quick.
void at_once(PendingCall& call, const std::function<Status(Session&)>& work);
// Answers a call from a thread of `pool`; `work` is told by the call whether it is still wanted. A drain
// waits for it.
void on_pool(PendingCall& call, WorkPool& pool, std::function<Status(Session&, const PendingCall&)> work);
// The same for what a drain refuses: it is asked when the call comes, not when its turn does.
void work_on_pool(PendingCall& call, WorkPool& pool,
                  std::function<Status(Session&, const PendingCall&)> work);

}  // namespace eagle::server
