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
#include "server/rpc/inspect.h"
#include "server/rpc/launch_call.h"
#include "server/rpc/service.h"
#include "server/rpc/services.h"
#include "server/rpc/verify_call.h"
#include "server/summaries.h"

namespace eagle::server {
namespace {

// A build of so many takes long beside giving back what it leaves free, which is half as much as what stays
// of it, in small pieces between.
constexpr int many_stages = 5'000;

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

class GraphsService final : public Service {
public:
  explicit GraphsService(Daemon& daemon) : Service(daemon, v1::Graphs::service_full_name()), daemon_(daemon) {
    make_and_release();
    launch();
    look();
  }

private:
  void make_and_release() {
    unary("Build", [this](PendingCall& call, const v1::BuildRequest& request, v1::BuildReply& reply) {
      if (request.graph().stages_size() >= many_stages) call.afterwards([this] { daemon_.give_back_heap(); });
      work_on_pool(call, daemon_.build_pool(),
                   [this, &request, &reply](Session& session, const PendingCall& made) {
                     return build(daemon_, session, made, request, reply);
                   });
    });
    unary("Update", [this](PendingCall& call, const v1::UpdateRequest& request, v1::UpdateReply&) {
      on_pool(call, daemon_.build_pool(), [this, &request](Session& session, const PendingCall&) {
        return daemon_.update(session, request);
      });
    });
    unary("Rebind", [this](PendingCall& call, const v1::RebindRequest& request, v1::RebindReply& reply) {
      work_on_pool(call, daemon_.build_pool(),
                   [this, &request, &reply](Session& session, const PendingCall& made) {
                     return rebind(daemon_, session, made, request, reply);
                   });
    });
    unary("Release",
          [this](PendingCall& call, const v1::ReleaseGraphRequest& request, v1::ReleaseGraphReply&) {
            // It may free the last of a released plane, hence where memory goes.
            const auto graph = call.session()->graph(request.graph());
            on_pool(call, daemon_.memory_pool(graph.ok() ? (*graph)->released_bytes() : 0),
                    [&request](Session& session, const PendingCall&) {
                      return session.release_graph(request.graph());
                    });
          });
    unary("Restore",
          [this](PendingCall& call, const v1::RestoreGraphRequest& request, v1::RestoreGraphReply&) {
            on_pool(call, daemon_.build_pool(), [this, &request](Session& session, const PendingCall&) {
              return daemon_.graph(session, request.graph()).status();
            });
          });
  }

  void launch() {
    unary("Launch", launch_call);
    stream<v1::LaunchServerMessage>("LaunchWithCalls", launch_with_calls);
    unary("Enqueue", [](PendingCall& call, const v1::LaunchRequest& request, v1::EnqueueReply&) {
      enqueue_call(call, request);
    });
    unary("Cancel", [](PendingCall& call, const v1::CancelRequest& request, v1::CancelReply&) {
      at_once(call, [&request](Session& session) {
        session.cancel(request.launch_id());
        return Status();
      });
    });
  }

  // On the pool where compilers work: it may be one of them.
  void look() {
    unary("Edges", [this](PendingCall& call, const v1::EdgesRequest& request, v1::EdgesReply& reply) {
      on_pool(call, daemon_.build_pool(),
              [this, &request, &reply](Session& session, const PendingCall& made) {
                return edges(daemon_, session, made, request.graph(), reply);
              });
    });
    unary("Picture", [this](PendingCall& call, const v1::PictureRequest& request, v1::PictureReply& reply) {
      on_pool(call, daemon_.build_pool(), [this, &request, &reply](Session& session, const PendingCall&) {
        return picture(daemon_, session, request, reply);
      });
    });
    unary("Explain", [this](PendingCall& call, const v1::ExplainRequest& request, v1::ExplainReply& reply) {
      on_pool(call, daemon_.build_pool(), [this, &request, &reply](Session& session, const PendingCall&) {
        return explain(daemon_, session, request, reply);
      });
    });
    unary("Inspect", [this](PendingCall& call, const v1::InspectRequest& request, v1::InspectReply& reply) {
      on_pool(call, daemon_.build_pool(), [this, &request, &reply](Session& session, const PendingCall&) {
        return inspect(daemon_, session, request, reply);
      });
    });
    unary("Describe", [this](PendingCall& call, const v1::DescribeGraphRequest& request,
                             v1::DescribeGraphReply& reply) {
      on_pool(call, daemon_.build_pool(), [this, &request, &reply](Session& session, const PendingCall&) {
        return describe_graph(daemon_, session, request, reply);
      });
    });
    unary("ListKernel", [this](PendingCall& call, const v1::ListKernelRequest& request,
                               v1::ListKernelReply& reply) {
      on_pool(call, daemon_.build_pool(), [this, &request, &reply](Session& session, const PendingCall&) {
        return list_kernel(daemon_, session, request, reply);
      });
    });
    unary("Verify", verify_call);
    unary("Timeline", [this](PendingCall& call, const v1::GraphTimelineRequest& request,
                             v1::TimelineReply& reply) {
      on_pool(call, daemon_.build_pool(), [this, &request, &reply](Session& session, const PendingCall&) {
        return timeline(daemon_, session, request, reply);
      });
    });
    unary("List",
          [this](PendingCall& call, const v1::ListGraphsRequest& request, v1::ListGraphsReply& reply) {
            at_once(call, [this, &request, &reply](Session& session) {
              return list(daemon_, session, request, reply);
            });
          });
  }

  Daemon& daemon_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_graphs_service(Daemon& daemon) {
  return std::make_unique<GraphsService>(daemon);
}

}  // namespace eagle::server
