#include "server/summaries.h"

#include <cstddef>
#include <string>

#include "eagle/v1/admin.pb.h"
#include "eagle/v1/graph.pb.h"
#include "eagle/v1/service.pb.h"
#include "engine/run/report_message.h"
#include "server/protocol.h"

namespace eagle::server {
namespace {

void describe(const TenantReport& tenant, v1::TenantInfo& message) {
  const auto held = [&](Held kind) { return tenant.held[static_cast<std::size_t>(kind)]; };
  message.set_name(tenant.name);
  message.set_weight(tenant.weight);
  message.set_priority(tenant.priority);
  message.set_sessions(held(Held::sessions));
  message.set_plane_bytes(held(Held::plane_bytes));
  message.set_graphs(held(Held::graphs));
  message.set_jobs(held(Held::jobs));
  message.set_planes(held(Held::planes));
  message.set_gpu_bytes(held(Held::gpu_bytes));
  message.set_jobs_ended(tenant.jobs_ended);
  message.set_refused(tenant.refused);
  message.set_device_s(tenant.device_s);
  message.set_compile_s(tenant.compile_s);
  message.set_queue_wait_s(tenant.queue_wait_s);
  message.set_longest_queue_wait_s(tenant.longest_queue_wait_s);
}

void describe_owner(const Session& session, std::uint64_t id, v1::GraphSummary& message) {
  message.set_session(session.id());
  message.set_client(session.client());
  message.set_tenant(session.tenant()->name());
  message.set_graph(id);
}

}  // namespace

void describe(Daemon& daemon, Session& session, v1::SessionSummary& message) {
  message.set_session(session.id());
  message.set_client(session.client());
  message.set_principal(session.principal().text());
  message.set_tenant(session.tenant()->name());
  message.set_pid(session.principal().pid);
  message.set_transport(session.over_tcp() ? "tcp" : "unix");
  message.set_ring(session.has_ring());
  message.set_attached(session.over_tcp() ? daemon.attachments().attached(session.id())
                                          : daemon.sessions().attached(session));
  message.set_lease_s(static_cast<double>(session.lease().count()));
  message.set_age_s(session.age_s());
  for (const auto& plane : session.planes().list()) {
    message.set_planes(message.planes() + 1);
    if (!plane->granted()) message.set_plane_bytes(message.plane_bytes() + plane->size());
  }
  message.set_graphs(session.graphs().size() + session.dormant().size());
  message.set_jobs(session.jobs());
  message.set_traceparent(session.trace().text());
}

void describe(const Session& session, const Plane& plane, v1::PlaneSummary& message) {
  message.set_session(session.id());
  message.mutable_plane()->set_id(plane.id().id);
  message.mutable_plane()->set_generation(plane.id().generation);
  message.set_bytes(plane.size());
  message.set_label(plane.label());
  message.set_device(plane.device());
  message.set_granted(plane.granted());
  message.set_read_only(plane.read_only());
  message.set_torn(plane.torn().any());
}

void describe(const Session& session, std::uint64_t id, const LoadedGraph& graph, v1::GraphSummary& message) {
  describe_owner(session, id, message);
  message.set_name(graph.built().graph().name);
  message.set_nodes(static_cast<std::uint32_t>(graph.nodes()));
  message.set_launches(graph.launches());
  for (const graph::ScratchUse& use : graph.built().scratch().uses) {
    v1::ScratchUse& scratch = *message.add_scratch();
    scratch.set_name(use.name);
    scratch.set_bytes(use.bytes);
    scratch.set_in_memory(use.in_memory);
    scratch.set_offset(use.offset);
  }
  message.set_scratch_bytes(graph.built().scratch().bytes);
}

void describe(const Session& session, std::uint64_t id, const v1::GraphDescription& graph,
              std::uint32_t nodes, v1::GraphSummary& message) {
  describe_owner(session, id, message);
  message.set_name(graph.name());
  message.set_nodes(nodes);
}

namespace {

void describe(const Gpus::Use& use, v1::GpuInfo& message) {
  message.set_device("cuda:" + std::to_string(use.info.ordinal));
  message.set_name(use.info.name);
  message.set_uuid(use.info.uuid);
  message.set_planes(use.planes);
  message.set_plane_bytes(use.plane_bytes);
  message.set_plane_budget_bytes(use.budget_bytes);
  message.set_lost(use.lost);
}

// What was whose, others are not told.
void describe(const v1::GpuFault& fault, std::string_view tenant, bool sees_all, v1::GpuFault& message) {
  message = fault;
  if (sees_all) return;
  message.clear_sessions();
  for (const v1::GpuFault::Session& session : fault.sessions()) {
    if (session.tenant() == tenant) *message.add_sessions() = session;
  }
  message.clear_runs();
  for (const v1::GpuFault::Run& run : fault.runs()) {
    if (run.tenant() == tenant) *message.add_runs() = run;
  }
  if (message.tenant() == tenant) return;
  message.clear_tenant();
  message.clear_graph();
}

}  // namespace

void describe(const Daemon& daemon, const Surroundings& surroundings, std::string_view tenant, bool sees_all,
              v1::InfoReply& reply) {
  const DaemonInfo info = daemon.info();
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
  reply.set_tenant(std::string(tenant));
  reply.set_worker_restarts(info.restarts);
  reply.set_draining(daemon.drains());
  for (const TenantReport& report : info.tenants) {
    if (sees_all || report.name == tenant) describe(report, *reply.add_tenants());
  }
  for (const std::string& endpoint : surroundings.listen) reply.add_listen(endpoint);
  for (const Gpus::Use& use : daemon.gpus().uses()) describe(use, *reply.add_gpus());
  for (const GpuFaults::Fault& fault : daemon.gpu_faults().list())
    describe(*fault, tenant, sees_all, *reply.add_gpu_faults());
}

}  // namespace eagle::server
