#include <utility>

#include "eagle/v1/service.grpc.pb.h"
#include "engine/graph/edges.h"
#include "engine/graph/schedule.h"
#include "engine/view/text.h"
#include "server/rpc/call.h"
#include "server/rpc/launch_call.h"
#include "server/rpc/services.h"

namespace eagle::server {
namespace {

Status build(Daemon& daemon, Session& session, const PendingCall& call, const v1::BuildRequest& request,
             v1::BuildReply& reply) {
  EAGLE_RETURN_IF_ERROR(daemon.accepts_work());
  EAGLE_ASSIGN_OR_RETURN(const Daemon::Built built, daemon.build(session, request.graph()));
  if (call.cancelled()) return session.release_graph(built.graph);  // nobody will hear of it
  const run::BuiltGraph& graph = built.loaded->built();
  reply.set_graph(built.graph);
  for (const graph::StageSchedule schedule : graph.schedule()) {
    reply.add_schedule(std::string(graph::name_of(schedule)));
  }
  for (const std::string& label : graph.node_labels()) reply.add_node_labels(label);
  reply.set_compiled(graph.compiled());
  reply.set_build_s(graph.build_s());
  return {};
}

Status edges(const Limits& limits, const Session& session, std::uint64_t id, v1::EdgesReply& reply) {
  EAGLE_ASSIGN_OR_RETURN(const auto graph, session.graph(id));
  EAGLE_ASSIGN_OR_RETURN(const auto found, graph->edges(limits));
  for (const graph::Edge& edge : found) {
    v1::Edge& message = *reply.add_edges();
    message.set_source(edge.source);
    message.set_destination(edge.destination);
    message.set_plane(edge.plane);
    message.set_kind(static_cast<v1::HazardKind>(edge.kind));
  }
  return {};
}

Status picture(const Session& session, const v1::PictureRequest& request, v1::PictureReply& reply) {
  EAGLE_ASSIGN_OR_RETURN(const auto graph, session.graph(request.graph()));
  if (request.format() != v1::PICTURE_TEXT) {
    return {Reason::bad_value, "expected the picture format PICTURE_TEXT (1), found " +
                                   std::to_string(request.format()) + "; this daemon draws no other"};
  }
  view::TextOptions options;
  options.schedule = graph->built().schedule();
  reply.mutable_picture()->set_format(v1::PICTURE_TEXT);
  reply.mutable_picture()->set_content(view::to_text(graph->built().graph(), options));
  return {};
}

Status list(const Session& session, v1::ListGraphsReply& reply) {
  for (const auto& [id, graph] : session.graphs()) {
    v1::GraphSummary& summary = *reply.add_graphs();
    summary.set_graph(id);
    summary.set_name(graph->built().graph().name);
    summary.set_nodes(static_cast<std::uint32_t>(graph->nodes()));
    summary.set_launches(graph->launches());
  }
  return {};
}

class GraphsService final : public v1::Graphs::CallbackService {
public:
  explicit GraphsService(Daemon& daemon) : daemon_(daemon) {}

  grpc::ServerUnaryReactor* Build(grpc::CallbackServerContext* context, const v1::BuildRequest* request,
                                  v1::BuildReply* reply) override {
    return on_pool(daemon_, daemon_.build_pool(), *context,
                   [this, request, reply](Session& session, const PendingCall& call) {
                     return build(daemon_, session, call, *request, *reply);
                   });
  }

  grpc::ServerUnaryReactor* Launch(grpc::CallbackServerContext* context, const v1::LaunchRequest* request,
                                   v1::LaunchReport* reply) override {
    return launch_call(daemon_, *context, *request, *reply);
  }

  grpc::ServerBidiReactor<v1::LaunchClientMessage, v1::LaunchServerMessage>* LaunchWithCalls(
      grpc::CallbackServerContext* context) override {
    return launch_with_calls(daemon_, *context);
  }

  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context, const v1::CancelRequest* request,
                                   v1::CancelReply*) override {
    return at_once(daemon_, *context, [request](Session& session) {
      session.cancel(request->launch_id());
      return Status();
    });
  }

  grpc::ServerUnaryReactor* Edges(grpc::CallbackServerContext* context, const v1::EdgesRequest* request,
                                  v1::EdgesReply* reply) override {
    return on_pool(daemon_, daemon_.build_pool(), *context,
                   [this, request, reply](const Session& session, const PendingCall&) {
                     return edges(daemon_.limits(), session, request->graph(), *reply);
                   });
  }

  grpc::ServerUnaryReactor* Picture(grpc::CallbackServerContext* context, const v1::PictureRequest* request,
                                    v1::PictureReply* reply) override {
    return on_pool(daemon_, daemon_.build_pool(), *context,
                   [request, reply](const Session& session, const PendingCall&) {
                     return picture(session, *request, *reply);
                   });
  }

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListGraphsRequest*,
                                 v1::ListGraphsReply* reply) override {
    return at_once(daemon_, *context, [reply](const Session& session) { return list(session, *reply); });
  }

  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context,
                                    const v1::ReleaseGraphRequest* request, v1::ReleaseGraphReply*) override {
    // It may free the last of a released plane, hence where memory goes.
    const auto pool = [this, request](Session& session) -> WorkPool& {
      const auto graph = session.graph(request->graph());
      return daemon_.memory_pool(graph.ok() ? (*graph)->released_bytes() : 0);
    };
    return on_pool(daemon_, pool, *context, [request](Session& session, const PendingCall&) {
      return session.release_graph(request->graph());
    });
  }

private:
  Daemon& daemon_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_graphs_service(Daemon& daemon) {
  return std::make_unique<GraphsService>(daemon);
}

}  // namespace eagle::server
