#include "server/rpc/verify_call.h"

#include <utility>

#include "eagle/v1/inspect.pb.h"
#include "engine/graph/schedule.h"
#include "server/rpc/inspect.h"
#include "server/verification.h"

namespace eagle::server {
namespace {

void describe(const Difference& difference, v1::Difference& message) {
  message.set_what(static_cast<v1::Difference::What>(static_cast<int>(difference.what) + 1));
  message.set_plane(difference.plane);
  message.set_node(difference.node);
  message.set_argument(difference.argument);
  message.mutable_index()->Add(difference.index.begin(), difference.index.end());
  message.set_cpu(difference.cpu);
  message.set_gpu(difference.gpu);
  message.set_has_ulps(difference.ulps.has_value());
  message.set_ulps(difference.ulps.value_or(0));
  message.set_text(to_string(difference));
}

void describe(const Verified& verified, v1::VerifyReply& reply) {
  if (verified.difference) describe(*verified.difference, *reply.mutable_difference());
  reply.set_device(verified.device);
  reply.set_gpu(verified.gpu);
  reply.set_backend(verified.backend);
  for (const graph::StageSchedule schedule : verified.schedule)
    reply.add_schedule(std::string(graph::name_of(schedule)));
  reply.set_nodes(static_cast<std::uint32_t>(verified.nodes));
  reply.set_planes(static_cast<std::uint32_t>(verified.planes));
  reply.set_bytes(verified.bytes);
}

}  // namespace

void verify_call(PendingCall& call, const v1::VerifyRequest& request, v1::VerifyReply& reply) {
  Daemon& daemon = call.daemon();
  const std::shared_ptr<Session>& session = call.session();
  const Status accepts = daemon.accepts_launches(*session);
  if (!accepts.ok()) return call.finish(accepts);
  const auto owner = owner_of(daemon, session, request.session(), request.graph());
  if (!owner.ok()) return call.finish(owner.status());
  VerifyAsked asked;
  asked.graph = request.graph();
  asked.device = request.device();
  asked.launches = request.launches() == 0 ? 1 : request.launches();
  asked.deadline = deadline_of(call.context());
  const auto verification =
      Verification::make(daemon, *owner, session, std::move(asked),
                         [call = call.shared(), &reply](const StatusOr<Verified>& outcome) {
                           if (outcome.ok()) describe(*outcome, reply);
                           call->finish(outcome.status());
                         });
  call.when_cancelled([verification] { verification->cancel(); });
  const Status queued =
      daemon.build_pool().submit([verification] { verification->begin(); }, session->tenant()->name());
  if (!queued.ok()) verification->refuse(queued);
}

}  // namespace eagle::server
