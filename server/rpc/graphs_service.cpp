#include <chrono>
#include <optional>
#include <utility>

#include "eagle/v1/service.grpc.pb.h"
#include "eagle/v1/state.pb.h"
#include "engine/base/clock.h"
#include "engine/graph/edges.h"
#include "engine/graph/explain.h"
#include "engine/graph/schedule.h"
#include "engine/view/explain_text.h"
#include "engine/view/picture.h"
#include "server/rpc/call.h"
#include "server/rpc/inspect.h"
#include "server/rpc/launch_call.h"
#include "server/rpc/services.h"
#include "server/rpc/verify.h"
#include "server/summaries.h"

namespace eagle::server {
namespace {

template <typename Reply>  // BuildReply, RebindReply
void describe(const graph::ScratchLayout& layout, Reply& reply) {
  for (const graph::ScratchUse& use : layout.uses) {
    v1::ScratchUse& message = *reply.add_scratch();
    message.set_name(use.name);
    message.set_bytes(use.bytes);
    message.set_in_memory(use.in_memory);
    message.set_offset(use.offset);
  }
  reply.set_scratch_bytes(layout.bytes);
}

template <typename Reply>  // BuildReply, RebindReply
void describe(const run::BuiltGraph& graph, Reply& reply) {
  describe(graph.scratch(), reply);
  run::describe(graph.execution(), *reply.mutable_execution());
}

// Nobody waits for the call any more.
GivenUp given_up(const PendingCall& call) {
  return [&call] { return call.cancelled(); };
}

Status build(Daemon& daemon, Session& session, const PendingCall& call, const v1::BuildRequest& request,
             v1::BuildReply& reply) {
  EAGLE_ASSIGN_OR_RETURN(const Daemon::Built built, daemon.build(session, request.graph(), given_up(call)));
  if (call.cancelled()) return session.release_graph(built.graph);  // nobody will hear of it
  const run::BuiltGraph& graph = built.loaded->built();
  reply.set_graph(built.graph);
  for (const graph::StageSchedule schedule : graph.schedule()) {
    reply.add_schedule(std::string(graph::name_of(schedule)));
  }
  for (const std::string& label : graph.node_labels()) reply.add_node_labels(label);
  reply.set_compiled(graph.compiled());
  reply.set_build_s(graph.build_s());
  reply.set_backend(graph.backend());
  describe(graph, reply);
  return {};
}

Status rebind(Daemon& daemon, Session& session, const PendingCall& call, const v1::RebindRequest& request,
              v1::RebindReply& reply) {
  EAGLE_ASSIGN_OR_RETURN(const auto graph,
                         daemon.rebind(session, request.graph(), request.description(), given_up(call)));
  describe(graph->built(), reply);
  return {};
}

Status edges(Daemon& daemon, Session& session, const PendingCall& call, std::uint64_t id,
             v1::EdgesReply& reply) {
  EAGLE_ASSIGN_OR_RETURN(const auto graph, daemon.graph(session, id));
  EAGLE_ASSIGN_OR_RETURN(const auto found, graph->edges(daemon.limits(), given_up(call)));
  for (const graph::Edge& edge : found) {
    v1::Edge& message = *reply.add_edges();
    message.set_source(edge.source);
    message.set_destination(edge.destination);
    message.set_plane(edge.plane);
    message.set_kind(static_cast<v1::HazardKind>(edge.kind));
  }
  return {};
}

Status picture(Daemon& daemon, Session& caller, const v1::PictureRequest& request, v1::PictureReply& reply) {
  EAGLE_ASSIGN_OR_RETURN(const auto graph, graph_of(daemon, caller, request.session(), request.graph()));
  const auto format = view::format_of(request.format());
  if (!format) {
    return {Reason::bad_value, "there is no picture format " + std::to_string(request.format()) +
                                   "; expected one of PictureFormat, PICTURE_TEXT (1) to PICTURE_FIGURE (5)"};
  }
  view::PictureOptions options;
  options.schedule = graph->built().schedule();
  options.backend = graph->built().backend();
  reply.mutable_picture()->set_format(request.format());
  reply.mutable_picture()->set_content(view::draw(graph->built().graph(), *format, options));
  return {};
}

Status explain(Daemon& daemon, Session& caller, const v1::ExplainRequest& request, v1::ExplainReply& reply) {
  EAGLE_ASSIGN_OR_RETURN(const auto graph, graph_of(daemon, caller, request.session(), request.graph()));
  EAGLE_ASSIGN_OR_RETURN(const graph::NodeReference node, graph::read(request.node()));
  std::optional<graph::NodeReference> other;
  if (request.has_other()) {
    EAGLE_ASSIGN_OR_RETURN(other, graph::read(request.other()));
  }
  const run::BuiltGraph& built = graph->built();
  EAGLE_ASSIGN_OR_RETURN(const graph::Explanation found, built.explain(node, other));
  graph::to_message(found, *reply.mutable_explanation());
  reply.mutable_explanation()->set_text(view::to_text(found));
  return {};
}

Status timeline(Daemon& daemon, Session& caller, const v1::GraphTimelineRequest& request,
                v1::TimelineReply& reply) {
  EAGLE_RETURN_IF_ERROR(graph_of(daemon, caller, request.session(), request.graph()).status());
  // Anybody may ask, as often as they like, on the threads that build: it is paid for as building is.
  EAGLE_RETURN_IF_ERROR(caller.tenant()->may_compile());
  const auto began = std::chrono::steady_clock::now();
  std::uint64_t events = 0, forgotten = 0;
  const std::uint64_t owner = request.session() == 0 ? caller.id() : request.session();
  reply.set_trace_json(daemon.timeline(owner, request.graph(), events, forgotten));
  reply.set_events(events);
  reply.set_forgotten(forgotten);
  caller.tenant()->note_compiled(seconds_since(began));
  return {};
}

void list(Session& session, v1::ListGraphsReply& reply) {
  for (const auto& [id, graph] : session.graphs()) describe(session, id, *graph, *reply.add_graphs());
  for (const std::uint64_t id : session.dormant()) {
    const auto record = session.records().find(id);
    if (!record.ok()) continue;  // released meanwhile
    describe(session, id, record->graph->description(), record->graph->nodes(), *reply.add_graphs());
  }
}

Status list(Daemon& daemon, Session& caller, const v1::ListGraphsRequest& request,
            v1::ListGraphsReply& reply) {
  if (!request.all_sessions()) {
    list(caller, reply);
    return {};
  }
  for (const auto& session : daemon.sessions().visible_to(caller.principal())) list(*session, reply);
  return {};
}

class GraphsService final : public v1::Graphs::CallbackService {
public:
  explicit GraphsService(Daemon& daemon) : daemon_(daemon) {}

  grpc::ServerUnaryReactor* Build(grpc::CallbackServerContext* context, const v1::BuildRequest* request,
                                  v1::BuildReply* reply) override {
    return work_on_pool(daemon_, daemon_.build_pool(), *context,
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

  grpc::ServerUnaryReactor* Enqueue(grpc::CallbackServerContext* context, const v1::LaunchRequest* request,
                                    v1::EnqueueReply*) override {
    return enqueue_call(daemon_, *context, *request);
  }

  grpc::ServerUnaryReactor* Update(grpc::CallbackServerContext* context, const v1::UpdateRequest* request,
                                   v1::UpdateReply*) override {
    return on_pool(
        daemon_, daemon_.build_pool(), *context,
        [this, request](Session& session, const PendingCall&) { return daemon_.update(session, *request); });
  }

  grpc::ServerUnaryReactor* Rebind(grpc::CallbackServerContext* context, const v1::RebindRequest* request,
                                   v1::RebindReply* reply) override {
    return work_on_pool(daemon_, daemon_.build_pool(), *context,
                        [this, request, reply](Session& session, const PendingCall& call) {
                          return rebind(daemon_, session, call, *request, *reply);
                        });
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
                   [this, request, reply](Session& session, const PendingCall& call) {
                     return edges(daemon_, session, call, request->graph(), *reply);
                   });
  }

  grpc::ServerUnaryReactor* Picture(grpc::CallbackServerContext* context, const v1::PictureRequest* request,
                                    v1::PictureReply* reply) override {
    return on_pool(daemon_, daemon_.build_pool(), *context,
                   [this, request, reply](Session& session, const PendingCall&) {
                     return picture(daemon_, session, *request, *reply);
                   });
  }

  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* context, const v1::ExplainRequest* request,
                                    v1::ExplainReply* reply) override {
    return on_pool(daemon_, daemon_.build_pool(), *context,
                   [this, request, reply](Session& session, const PendingCall&) {
                     return explain(daemon_, session, *request, *reply);
                   });
  }

  // On the pool where compilers work: it may be one of them.
  grpc::ServerUnaryReactor* Inspect(grpc::CallbackServerContext* context, const v1::InspectRequest* request,
                                    v1::InspectReply* reply) override {
    return on_pool(daemon_, daemon_.build_pool(), *context,
                   [this, request, reply](Session& session, const PendingCall&) {
                     return inspect(daemon_, session, *request, *reply);
                   });
  }

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeGraphRequest* request,
                                     v1::DescribeGraphReply* reply) override {
    return on_pool(daemon_, daemon_.build_pool(), *context,
                   [this, request, reply](Session& session, const PendingCall&) {
                     return describe_graph(daemon_, session, *request, *reply);
                   });
  }

  grpc::ServerUnaryReactor* ListKernel(grpc::CallbackServerContext* context,
                                       const v1::ListKernelRequest* request,
                                       v1::ListKernelReply* reply) override {
    return on_pool(daemon_, daemon_.build_pool(), *context,
                   [this, request, reply](Session& session, const PendingCall&) {
                     return list_kernel(daemon_, session, *request, *reply);
                   });
  }

  grpc::ServerUnaryReactor* Verify(grpc::CallbackServerContext* context, const v1::VerifyRequest* request,
                                   v1::VerifyReply* reply) override {
    const auto session = session_of(daemon_, *context);
    if (!session.ok()) return refuse(daemon_, *context, session.status());
    auto call = PendingCall::make(daemon_, *context);
    auto made = verification_of(daemon_, *session, *request, *reply, deadline_of(*context),
                                [call](const Status& status) { call->finish(status); });
    if (!made.ok()) {
      call->finish(made.status());
      return call.get();
    }
    const std::shared_ptr<Verification> verification = *std::move(made);
    call->when_cancelled([verification] { verification->cancel(); });
    const Status queued =
        daemon_.build_pool().submit([verification] { verification->begin(); }, (*session)->tenant()->name());
    if (!queued.ok()) verification->refuse(queued);
    return call.get();
  }

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListGraphsRequest* request,
                                 v1::ListGraphsReply* reply) override {
    return at_once(daemon_, *context, [this, request, reply](Session& session) {
      return list(daemon_, session, *request, *reply);
    });
  }

  grpc::ServerUnaryReactor* Timeline(grpc::CallbackServerContext* context,
                                     const v1::GraphTimelineRequest* request,
                                     v1::TimelineReply* reply) override {
    return on_pool(daemon_, daemon_.build_pool(), *context,
                   [this, request, reply](Session& session, const PendingCall&) {
                     return timeline(daemon_, session, *request, *reply);
                   });
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

  grpc::ServerUnaryReactor* Restore(grpc::CallbackServerContext* context,
                                    const v1::RestoreGraphRequest* request, v1::RestoreGraphReply*) override {
    return on_pool(daemon_, daemon_.build_pool(), *context,
                   [this, request](Session& session, const PendingCall&) {
                     return daemon_.graph(session, request->graph()).status();
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
