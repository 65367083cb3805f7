#include "server/rpc/verify.h"

#include <utility>

#include "eagle/v1/inspect.pb.h"
#include "engine/graph/schedule.h"
#include "server/rpc/inspect.h"

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

StatusOr<std::shared_ptr<Verification>> verification_of(
    Daemon& daemon, const std::shared_ptr<Session>& caller, const v1::VerifyRequest& request,
    v1::VerifyReply& reply, std::optional<std::chrono::steady_clock::time_point> deadline,
    std::function<void(const Status&)> done) {
  EAGLE_RETURN_IF_ERROR(daemon.accepts_launches(*caller));
  EAGLE_ASSIGN_OR_RETURN(auto owner, owner_of(daemon, caller, request.session(), request.graph()));
  VerifyAsked asked;
  asked.graph = request.graph();
  asked.device = request.device();
  asked.launches = request.launches() == 0 ? 1 : request.launches();
  asked.deadline = deadline;
  return Verification::make(daemon, std::move(owner), caller, std::move(asked),
                            [done = std::move(done), &reply](const StatusOr<Verified>& outcome) {
                              if (outcome.ok()) describe(*outcome, reply);
                              done(outcome.status());
                            });
}

}  // namespace eagle::server
