#include <unistd.h>

#include <utility>

#include "eagle/v1/service.grpc.pb.h"
#include "engine/run/report_message.h"
#include "server/protocol.h"
#include "server/rpc/call.h"
#include "server/rpc/services.h"

namespace eagle::server {
namespace {

class AdminService final : public v1::Admin::CallbackService {
public:
  AdminService(Daemon& daemon, std::vector<std::string> listen)
      : daemon_(daemon), listen_(std::move(listen)) {}

  grpc::ServerUnaryReactor* Info(grpc::CallbackServerContext* context, const v1::InfoRequest*,
                                 v1::InfoReply* reply) override {
    return at_once(daemon_, *context, [this, reply](const Session& caller) {
      describe(caller, *reply);
      return Status();
    });
  }

private:
  static void describe(const TenantReport& tenant, v1::TenantInfo& message) {
    const auto held = [&](Held kind) { return tenant.held[static_cast<std::size_t>(kind)]; };
    message.set_name(tenant.name);
    message.set_weight(tenant.weight);
    message.set_priority(tenant.priority);
    message.set_sessions(held(Held::sessions));
    message.set_plane_bytes(held(Held::plane_bytes));
    message.set_graphs(held(Held::graphs));
    message.set_jobs(held(Held::jobs));
    message.set_jobs_ended(tenant.jobs_ended);
    message.set_refused(tenant.refused);
    message.set_device_s(tenant.device_s);
    message.set_compile_s(tenant.compile_s);
    message.set_queue_wait_s(tenant.queue_wait_s);
    message.set_longest_queue_wait_s(tenant.longest_queue_wait_s);
  }

  void describe(const Session& caller, v1::InfoReply& reply) const {
    const DaemonInfo info = daemon_.info();
    reply.set_version(info.version);
    reply.mutable_protocol()->set_min(protocol_min);
    reply.mutable_protocol()->set_max(protocol_max);
    run::describe(info.host, *reply.mutable_host());
    reply.set_uptime_s(info.uptime_s);
    reply.set_threads(info.threads);
    reply.set_cpu(info.cpu);
    reply.set_sessions(info.sessions);
    reply.set_planes(info.planes);
    reply.set_plane_bytes(info.plane_bytes);
    reply.set_plane_budget_bytes(info.plane_budget_bytes);
    reply.set_graphs(info.graphs);
    reply.set_launches(info.launches);
    reply.set_kernels_cached(info.kernels_cached);
    reply.set_jobs(info.jobs);
    reply.set_jobs_held(info.jobs_held);
    const bool sees_all = caller.principal().uid == 0 || caller.principal().uid == ::geteuid();
    for (const TenantReport& tenant : info.tenants) {
      if (sees_all || tenant.name == caller.tenant()->name()) describe(tenant, *reply.add_tenants());
    }
    for (const std::string& endpoint : listen_) reply.add_listen(endpoint);
  }

  Daemon& daemon_;
  const std::vector<std::string> listen_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_admin_service(Daemon& daemon, std::vector<std::string> listen) {
  return std::make_unique<AdminService>(daemon, std::move(listen));
}

}  // namespace eagle::server
