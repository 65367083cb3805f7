#include "server/rpc/call.h"

#include <string_view>
#include <utility>

#include "proto/rpc_error.h"
#include "server/log_context.h"
#include "server/rpc/peer.h"
#include "server/rpc/rpc_status.h"

namespace eagle::server {

StatusOr<std::shared_ptr<Session>> session_of(Daemon& daemon, const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto secret = metadata.find(rpc::session_secret_key);
  auto found = daemon.sessions().find(secret == metadata.end()
                                          ? std::string_view()
                                          : std::string_view(secret->second.data(), secret->second.size()));
  if (!found.ok() && found.status().reason() == Reason::unauthenticated && !daemon.has_ended())
    daemon.note_authentication(found.status(), context.peer());
  EAGLE_ASSIGN_OR_RETURN(auto session, std::move(found));
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

std::shared_ptr<PendingCall> PendingCall::make(Daemon& daemon, grpc::CallbackServerContext& context) {
  std::shared_ptr<PendingCall> call(new PendingCall(daemon, context));
  call->self_ = call;
  return call;
}

void PendingCall::finish(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    handler_ = nullptr;
  }
  Finish(rpc::to_grpc(daemon_, status, context_));
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

grpc::ServerUnaryReactor* refuse(Daemon& daemon, grpc::CallbackServerContext& context, const Status& status) {
  auto* const reactor = context.DefaultReactor();
  reactor->Finish(rpc::to_grpc(daemon, status, context));
  return reactor;
}

grpc::ServerUnaryReactor* at_once(Daemon& daemon, grpc::CallbackServerContext& context,
                                  const std::function<Status(Session&)>& work) {
  const auto session = session_of(daemon, context);
  if (!session.ok()) return refuse(daemon, context, session.status());
  const LogScope scope({(*session)->id(), 0, 0, trace_of(**session, context)});
  return refuse(daemon, context, work(**session));
}

grpc::ServerUnaryReactor* on_pool(Daemon& daemon, WorkPool& pool, grpc::CallbackServerContext& context,
                                  std::function<Status(Session&, const PendingCall&)> work) {
  return on_pool(
      daemon, [&pool](Session&) -> WorkPool& { return pool; }, context, std::move(work));
}

grpc::ServerUnaryReactor* work_on_pool(Daemon& daemon, WorkPool& pool, grpc::CallbackServerContext& context,
                                       std::function<Status(Session&, const PendingCall&)> work) {
  const Status accepts = daemon.accepts_work();
  return accepts.ok() ? on_pool(daemon, pool, context, std::move(work)) : refuse(daemon, context, accepts);
}

grpc::ServerUnaryReactor* on_pool(Daemon& daemon, const std::function<WorkPool&(Session&)>& pool,
                                  grpc::CallbackServerContext& context,
                                  std::function<Status(Session&, const PendingCall&)> work) {
  auto counted = daemon.underway().enter();
  auto session = session_of(daemon, context);
  if (!session.ok()) return refuse(daemon, context, session.status());
  auto call = PendingCall::make(daemon, context);
  WorkPool& chosen = pool(**session);
  const std::string tenant = (*session)->tenant()->name();
  const TraceContext trace = trace_of(**session, context);
  const Status queued = chosen.submit(
      [&daemon, call, session = *std::move(session), work = std::move(work), trace,
       counted = std::move(counted)]() mutable {
        const LogScope scope({session->id(), 0, 0, trace});
        if (call->cancelled()) {
          call->finish({Reason::cancelled, "the caller cancelled"});
        } else if (daemon.has_ended()) {
          call->finish({Reason::shutting_down, "the daemon has gone away meanwhile"});
        } else {
          call->finish(work(*session, *call));
        }
        counted.reset();
      },
      tenant);
  if (!queued.ok()) call->finish(queued);
  return call.get();
}

}  // namespace eagle::server
