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

void PendingCall::finish(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    handler_ = nullptr;
  }
  Finish(rpc::to_grpc(daemon(), status, context()));
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

void at_once(PendingCall& call, const std::function<Status(Session&)>& work) {
  const LogScope scope({call.session()->id(), 0, 0, call.trace()});
  call.finish(work(*call.session()));
}

void on_pool(PendingCall& call, WorkPool& pool, std::function<Status(Session&, const PendingCall&)> work) {
  const Status queued = pool.submit(
      [call = call.shared(), work = std::move(work), counted = call.daemon().underway().enter()]() mutable {
        Session& session = *call->session();
        const LogScope scope({session.id(), 0, 0, call->trace()});
        if (call->cancelled()) {
          call->finish({Reason::cancelled, "the caller cancelled"});
        } else if (call->daemon().has_ended()) {
          call->finish({Reason::shutting_down, "the daemon has gone away meanwhile"});
        } else {
          call->finish(work(session, *call));
        }
        counted.reset();
      },
      call.session()->tenant()->name());
  if (!queued.ok()) call.finish(queued);
}

void work_on_pool(PendingCall& call, WorkPool& pool,
                  std::function<Status(Session&, const PendingCall&)> work) {
  const Status accepts = call.daemon().accepts_work();
  accepts.ok() ? on_pool(call, pool, std::move(work)) : call.finish(accepts);
}

}  // namespace eagle::server
