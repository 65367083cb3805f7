#include "client/remote_admin.h"

#include <utility>

#include "client/remote_connection.h"

namespace eagle {
namespace {

using Stubs = RemoteLink::Stubs;

constexpr milliseconds compiling{60'000};
// Who wants it to end earlier ends the program.
constexpr milliseconds verifying{3'600'000};

class RemoteAdmin final : public HostAdmin {
public:
  explicit RemoteAdmin(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

  Status info(v1::InfoReply& reply) override {
    return connection_->call("info", &Stubs::admin, &v1::Admin::Stub::Info, v1::InfoRequest(), reply);
  }
  Status sessions(v1::ListSessionsReply& reply) override {
    return connection_->call("sessions", &Stubs::admin, &v1::Admin::Stub::ListSessions,
                             v1::ListSessionsRequest(), reply);
  }
  Status planes(v1::ListAllPlanesReply& reply) override {
    return connection_->call("planes", &Stubs::admin, &v1::Admin::Stub::ListPlanes,
                             v1::ListAllPlanesRequest(), reply);
  }
  Status graphs(v1::ListGraphsReply& reply) override {
    v1::ListGraphsRequest request;
    request.set_all_sessions(true);
    return connection_->call("graphs", &Stubs::graphs, &v1::Graphs::Stub::List, request, reply);
  }
  Status describe(GraphAddress graph, v1::DescribeGraphReply& reply) override {
    v1::DescribeGraphRequest request;
    request.set_session(graph.session);
    request.set_graph(graph.graph);
    return connection_->call("graph", &Stubs::graphs, &v1::Graphs::Stub::Describe, request, reply, building);
  }
  Status inspect(GraphAddress graph, v1::InspectReply& reply) override {
    v1::InspectRequest request;
    request.set_session(graph.session);
    request.set_graph(graph.graph);
    return connection_->call("graph", &Stubs::graphs, &v1::Graphs::Stub::Inspect, request, reply, building);
  }
  Status kernel(const v1::ListKernelRequest& request, v1::ListKernelReply& reply) override {
    return connection_->call("kernel", &Stubs::graphs, &v1::Graphs::Stub::ListKernel, request, reply,
                             building + compiling);
  }
  Status explain(const v1::ExplainRequest& request, v1::ExplainReply& reply) override {
    return connection_->call("explain", &Stubs::graphs, &v1::Graphs::Stub::Explain, request, reply, building);
  }
  Status verify(const v1::VerifyRequest& request, v1::VerifyReply& reply) override {
    return connection_->call("verify", &Stubs::graphs, &v1::Graphs::Stub::Verify, request, reply, verifying);
  }
  Status timeline(std::optional<GraphAddress> graph, v1::TimelineReply& reply) override {
    if (!graph) {
      return connection_->call("timeline", &Stubs::admin, &v1::Admin::Stub::Timeline, v1::TimelineRequest(),
                               reply);
    }
    v1::GraphTimelineRequest request;
    request.set_session(graph->session);
    request.set_graph(graph->graph);
    return connection_->call("timeline", &Stubs::graphs, &v1::Graphs::Stub::Timeline, request, reply);
  }

  StatusOr<std::string> metrics() override {
    v1::MetricsReply reply;
    EAGLE_RETURN_IF_ERROR(
        connection_->call("metrics", &Stubs::admin, &v1::Admin::Stub::Metrics, v1::MetricsRequest(), reply));
    return std::move(*reply.mutable_text());
  }
  StatusOr<std::vector<std::string>> recent_log(std::uint32_t lines) override {
    v1::RecentLogRequest request;
    request.set_lines(lines);
    v1::RecentLogReply reply;
    EAGLE_RETURN_IF_ERROR(
        connection_->call("log", &Stubs::admin, &v1::Admin::Stub::RecentLog, request, reply));
    return std::vector<std::string>(reply.lines().begin(), reply.lines().end());
  }
  StatusOr<std::string> set_log_level(std::string_view level) override {
    v1::SetLogLevelRequest request;
    request.set_level(std::string(level));
    v1::SetLogLevelReply reply;
    EAGLE_RETURN_IF_ERROR(
        connection_->call("log-level", &Stubs::admin, &v1::Admin::Stub::SetLogLevel, request, reply));
    return reply.previous();
  }
  Status quarantine(v1::ListQuarantineReply& reply) override {
    return connection_->call("quarantine", &Stubs::admin, &v1::Admin::Stub::ListQuarantine,
                             v1::ListQuarantineRequest(), reply);
  }
  StatusOr<std::uint64_t> pardon(const v1::PardonRequest& request) override {
    v1::PardonReply reply;
    EAGLE_RETURN_IF_ERROR(
        connection_->call("pardon", &Stubs::admin, &v1::Admin::Stub::Pardon, request, reply));
    return reply.graphs();
  }
  Status drain(std::optional<std::uint32_t> timeout_s, v1::DrainReply& reply) override {
    v1::DrainRequest request;
    if (timeout_s) request.set_timeout_s(*timeout_s);
    // Twice would be told to hurry.
    return connection_->call("drain", &Stubs::admin, &v1::Admin::Stub::Drain, request, reply, {},
                             Connection::Again::must_not);
  }
  Status support_bundle(const std::function<Status(std::string_view)>& sink) override {
    EAGLE_RETURN_IF_ERROR(connection_->check("support-bundle"));
    const auto link = connection_->link();
    grpc::ClientContext context;
    connection_->prepare(context);
    context.set_deadline(std::chrono::system_clock::now() + connection_->timeout + compiling);
    const auto reader = link->rpc().admin.SupportBundle(&context, v1::SupportBundleRequest());
    v1::SupportBundleChunk chunk;
    Status kept;
    while (kept.ok() && reader->Read(&chunk)) kept = sink(chunk.data());
    if (!kept.ok()) context.TryCancel();
    const grpc::Status status = reader->Finish();
    return kept.ok() ? connection_->outcome("support-bundle", *link, status, context) : kept;
  }

  StatusOr<bool> serving(const std::string& service) override {
    using grpc::health::v1::HealthCheckResponse;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse reply;
    EAGLE_RETURN_IF_ERROR(connection_->check("health"));
    const auto link = connection_->link();
    grpc::ClientContext context;
    connection_->prepare(context);
    context.set_deadline(std::chrono::system_clock::now() + connection_->timeout);
    const grpc::Status asked = link->rpc().health.Check(&context, request, &reply);
    if (asked.error_code() == grpc::StatusCode::NOT_FOUND) {
      return Status(Reason::unknown_name, "health: there is no service '" + service +
                                              "'; expected nothing, eagled.ready, eagled.device.cpu, or "
                                              "eagled.device.cuda:0 once that GPU is used");
    }
    EAGLE_RETURN_IF_ERROR(connection_->outcome("health", *link, asked, context));
    return reply.status() == HealthCheckResponse::SERVING;
  }

private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace

std::unique_ptr<HostAdmin> remote_admin(std::shared_ptr<Connection> connection) {
  return std::make_unique<RemoteAdmin>(std::move(connection));
}

}  // namespace eagle
