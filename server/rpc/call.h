// What the services share: who calls, until when, and how a unary call is answered from another thread.
// For the .cpp files of this folder only: it brings gRPC's headers.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/base/status.h"
#include "server/daemon.h"

namespace eagle::server {

// The session whose secret the call carries, or UNAUTHENTICATED.
StatusOr<std::shared_ptr<Session>> session_of(Daemon& daemon, const grpc::CallbackServerContext& context);

// The trace that the call belongs to: that of its metadata `traceparent`, else its session's.
TraceContext trace_of(const Session& session, const grpc::CallbackServerContext& context);

std::optional<std::chrono::steady_clock::time_point> deadline_of(const grpc::CallbackServerContext& context);

// A unary call that some other thread finishes. It owns itself until gRPC has no more use for it; who holds
// a shared_ptr longer holds a finished call.
class PendingCall final : public grpc::ServerUnaryReactor {
public:
  static std::shared_ptr<PendingCall> make(Daemon& daemon, grpc::CallbackServerContext& context);
  // Once. The reply message must be complete, and is gone afterwards.
  void finish(const Status& status);
  // `handler` is called if the client gives up, also if it has; not after `finish`.
  void when_cancelled(std::function<void()> handler);
  [[nodiscard]] bool cancelled() const { return context_.IsCancelled(); }

private:
  PendingCall(Daemon& daemon, grpc::CallbackServerContext& context) : daemon_(daemon), context_(context) {}
  void OnCancel() override;
  void OnDone() override { self_.reset(); }

  Daemon& daemon_;
  grpc::CallbackServerContext& context_;
  std::shared_ptr<PendingCall> self_;
  std::mutex mutex_;
  bool cancelled_ = false;
  std::function<void()> handler_;
};

// Answers a call in this thread; `work` is quick.
grpc::ServerUnaryReactor* at_once(Daemon& daemon, grpc::CallbackServerContext& context,
                                  const std::function<Status(Session&)>& work);
// Answers a call from a thread of `pool`; `work` is told by the call whether it is still wanted. A drain
// waits for it.
grpc::ServerUnaryReactor* on_pool(Daemon& daemon, WorkPool& pool, grpc::CallbackServerContext& context,
                                  std::function<Status(Session&, const PendingCall&)> work);
// Where the session's state tells which pool that is.
grpc::ServerUnaryReactor* on_pool(Daemon& daemon, const std::function<WorkPool&(Session&)>& pool,
                                  grpc::CallbackServerContext& context,
                                  std::function<Status(Session&, const PendingCall&)> work);
// The same for what a drain refuses: it is asked when the call comes, not when its turn does.
grpc::ServerUnaryReactor* work_on_pool(Daemon& daemon, WorkPool& pool, grpc::CallbackServerContext& context,
                                       std::function<Status(Session&, const PendingCall&)> work);
// A call that is over before it began.
grpc::ServerUnaryReactor* refuse(Daemon& daemon, grpc::CallbackServerContext& context, const Status& status);

}  // namespace eagle::server
