#include "server/rpc/call.h"

#include <utility>

#include "proto/rpc_error.h"
#include "server/log_context.h"
#include "server/rpc/peer.h"
#include "server/rpc/rpc_status.h"

namespace eagle::server {

StatusOr<std::shared_ptr<Session>> session_of(Daemon& daemon, const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto secret = metadata.find(rpc::session_secret_key);
  if (secret == metadata.end()) return daemon.sessions().find({});
  EAGLE_ASSIGN_OR_RETURN(auto session,
                         daemon.sessions().find({secret->second.data(), secret->second.size()}));
  // Where every connection shows a certificate, a secret alone is not enough.
  if (session->principal().identity == Identity::certificate &&
      certificate_name(context) != session->principal().subject) {
    return daemon.sessions().find({});
  }
  return session;
}

TraceContext trace_of(const Session& session, const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto given = metadata.find(rpc::traceparent_key);
  const auto trace =
      given == metadata.end() ? std::nullopt : trace_context({given->second.data(), given->second.size()});
  return trace ? *trace : session.trace();
}

std::optional<std::chrono::steady_clock::time_point> deadline_of(const grpc::CallbackServerContext& context) {
  const auto left = context.deadline() - std::chrono::system_clock::now();
  // No deadline is the largest time point; one so far off makes no difference.
  if (left > std::chrono::hours(24 * 365)) return std::nullopt;
  return std::chrono::steady_clock::now() + left;
}

std::shared_ptr<PendingCall> PendingCall::make(grpc::CallbackServerContext& context) {
  std::shared_ptr<PendingCall> call(new PendingCall(context));
  call->self_ = call;
  return call;
}

void PendingCall::finish(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    handler_ = nullptr;
  }
  Finish(rpc::to_grpc(status, context_));
}

void PendingCall::when_cancelled(std::function<void()> handler) {
  {
    const std::lock_guard lock(mutex_);
    if (!cancelled_) {
      handler_ = std::move(handler);
      return;
    }
  }
  handler();
}

void PendingCall::OnCancel() {
  std::function<void()> handler;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    handler = std::exchange(handler_, nullptr);
  }
  if (handler) handler();
}

grpc::ServerUnaryReactor* refuse(grpc::CallbackServerContext& context, const Status& status) {
  auto* const reactor = context.DefaultReactor();
  reactor->Finish(rpc::to_grpc(status, context));
  return reactor;
}

grpc::ServerUnaryReactor* at_once(Daemon& daemon, grpc::CallbackServerContext& context,
                                  const std::function<Status(Session&)>& work) {
  const auto session = session_of(daemon, context);
  if (!session.ok()) return refuse(context, session.status());
  const LogScope scope({(*session)->id(), 0, 0, trace_of(**session, context)});
  return refuse(context, work(**session));
}

grpc::ServerUnaryReactor* on_pool(Daemon& daemon, WorkPool& pool, grpc::CallbackServerContext& context,
                                  std::function<Status(Session&, const PendingCall&)> work) {
  return on_pool(
      daemon, [&pool](Session&) -> WorkPool& { return pool; }, context, std::move(work));
}

grpc::ServerUnaryReactor* on_pool(Daemon& daemon, const std::function<WorkPool&(Session&)>& pool,
                                  grpc::CallbackServerContext& context,
                                  std::function<Status(Session&, const PendingCall&)> work) {
  auto session = session_of(daemon, context);
  if (!session.ok()) return refuse(context, session.status());
  auto call = PendingCall::make(context);
  WorkPool& chosen = pool(**session);
  const TraceContext trace = trace_of(**session, context);
  const Status queued = chosen.submit([call, session = *std::move(session), work = std::move(work), trace] {
    const LogScope scope({session->id(), 0, 0, trace});
    call->finish(call->cancelled() ? Status(Reason::cancelled, "the caller cancelled")
                                   : work(*session, *call));
  });
  if (!queued.ok()) call->finish(queued);
  return call.get();
}

}  // namespace eagle::server
