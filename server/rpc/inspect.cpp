#include "server/rpc/inspect.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "eagle/v1/inspect.pb.h"
#include "eagle/v1/service.pb.h"
#include "eagle/v1/state.pb.h"
#include "engine/base/clock.h"
#include "engine/graph/edges.h"
#include "engine/graph/explain.h"
#include "engine/graph/schedule.h"
#include "engine/kernel/text.h"
#include "engine/kernel/wire.h"

namespace eagle::server {
namespace {

void describe(const kernel::Argument& argument, const kernel::Access& access,
              v1::InspectedArgument& message) {
  message.set_name(argument.name);
  message.set_role(static_cast<v1::Role>(argument.role));
  message.mutable_type()->set_scalar(static_cast<v1::ScalarType>(argument.type.scalar));
  for (std::size_t axis = 0; axis < argument.type.rank; ++axis)
    message.mutable_type()->add_extents(argument.type.extents[axis]);
  if (argument.role == kernel::Role::reduce) message.set_reduce(static_cast<v1::ReduceOp>(argument.reduce));
  for (const kernel::Axis& axis : argument.axes) {
    message.add_axes()->set_name(axis.name);
    message.mutable_axes()->rbegin()->set_extent(axis.extent);
  }
  message.set_read(access.read);
  message.set_written(access.written);
}

void describe(const kernel::Kernel& kernel, v1::InspectedKernel& message) {
  message.set_name(kernel.name);
  message.set_hash(kernel::content_hash(kernel));
  message.set_real(static_cast<v1::ScalarType>(kernel.real));
  const std::vector<kernel::Access> accesses = kernel::accesses(kernel);
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i)
    describe(kernel.arguments[i], accesses[i], *message.add_arguments());
}

void describe(const run::CompiledFunction& function, v1::InspectedFunction& message) {
  for (const run::ExecutedNode& node : function.nodes) {
    message.add_nodes()->set_index(node.index);
    message.mutable_nodes()->rbegin()->set_label(node.label);
  }
  message.set_name(function.kernel->name);
  message.set_hash(function.code->hash());
  message.set_cpu(function.code->cpu());
  message.set_lanes(static_cast<std::uint32_t>(function.code->lanes()));
  message.set_code_bytes(function.code->bytes());
}

// As many as the executor reports of.
void describe_nodes(const graph::Graph& graph, v1::InspectReply& reply) {
  std::size_t bytes = 0;
  const std::vector<graph::Leaf> leaves = graph::leaves(graph);
  for (std::uint32_t i = 0; i < leaves.size(); ++i) {
    const graph::Node& node = *leaves[i].node;
    bytes += node.label.size();
    if (i >= run::most_reported_nodes || bytes > run::most_reported_bytes) {
      reply.set_nodes_left_out(leaves.size() - i);
      return;
    }
    v1::InspectedNode& message = *reply.add_nodes();
    message.set_index(i);
    message.set_label(node.label);
    message.set_stage(leaves[i].stage);
    message.set_kind(graph::kind_of(graph, node));
  }
}

void describe_edges(const LoadedGraph& graph, const Limits& limits, v1::InspectReply& reply) {
  const auto found = graph.edges(limits);
  if (!found.ok()) {
    reply.set_no_edges(found.status().message());
    return;
  }
  for (const graph::Edge& edge : *found) {
    v1::Edge& message = *reply.add_edges();
    message.set_source(edge.source);
    message.set_destination(edge.destination);
    message.set_plane(edge.plane);
    message.set_kind(static_cast<v1::HazardKind>(edge.kind));
  }
}

StatusOr<std::shared_ptr<const kernel::Kernel>> kernel_of(const run::BuiltGraph& graph,
                                                          const v1::ListKernelRequest& request) {
  const auto none = [](const char* what, std::size_t there, std::uint32_t asked) {
    return Status(Reason::bad_value, "there is no " + std::string(what) + " " + std::to_string(asked) +
                                         "; expected an index below " + std::to_string(there));
  };
  if (request.which_case() == v1::ListKernelRequest::kKernel) {
    const auto& kernels = graph.graph().kernels;
    if (request.kernel() >= kernels.size()) return none("kernel", kernels.size(), request.kernel());
    return kernels[request.kernel()];
  }
  if (request.which_case() == v1::ListKernelRequest::kFunction) {
    const auto functions = graph.functions();
    if (request.function() >= functions.size()) return none("function", functions.size(), request.function());
    return functions[request.function()].kernel;
  }
  return Status(Reason::bad_message, "expected the index of a kernel or a function, found neither");
}

StatusOr<std::string> code_listing(Daemon& daemon, Session& caller, const kernel::Kernel& kernel,
                                   std::string_view what) {
  EAGLE_RETURN_IF_ERROR(caller.tenant()->may_compile());
  const auto begun = std::chrono::steady_clock::now();
  auto text = daemon.engine().compiler().listing(kernel, daemon.engine().target(), what);
  caller.tenant()->note_compiled(seconds_since(begun));
  return text;
}

}  // namespace

StatusOr<std::shared_ptr<Session>> owner_of(Daemon& daemon, const std::shared_ptr<Session>& caller,
                                            std::uint64_t owner, std::uint64_t graph) {
  if (owner == 0 || owner == caller->id()) return caller;
  for (const auto& session : daemon.sessions().visible_to(caller->principal())) {
    if (session->id() == owner) return session;
  }
  return Status(Reason::unknown_graph, "there is no graph " + std::to_string(graph) + " of session " +
                                           std::to_string(owner) +
                                           " that the caller may see; eaglectl graphs lists those there are");
}

StatusOr<std::shared_ptr<LoadedGraph>> graph_of(Daemon& daemon, Session& caller, std::uint64_t owner,
                                                std::uint64_t graph) {
  EAGLE_ASSIGN_OR_RETURN(const auto session, owner_of(daemon, caller.shared_from_this(), owner, graph));
  return daemon.graph(*session, graph);
}

Status describe_graph(Daemon& daemon, Session& caller, const v1::DescribeGraphRequest& request,
                      v1::DescribeGraphReply& reply) {
  EAGLE_ASSIGN_OR_RETURN(const auto session,
                         owner_of(daemon, caller.shared_from_this(), request.session(), request.graph()));
  EAGLE_ASSIGN_OR_RETURN(const GraphRecords::Record record, session->records().find(request.graph()));
  *reply.mutable_description() = record.graph->description();
  *reply.mutable_params() = record.params->params();
  return {};
}

Status inspect(Daemon& daemon, Session& caller, const v1::InspectRequest& request, v1::InspectReply& reply) {
  EAGLE_ASSIGN_OR_RETURN(const auto loaded, graph_of(daemon, caller, request.session(), request.graph()));
  const run::BuiltGraph& built = loaded->built();
  reply.set_name(built.graph().name);
  reply.set_launches(loaded->launches());
  describe_nodes(built.graph(), reply);
  describe_edges(*loaded, daemon.limits(), reply);
  for (const graph::StageSchedule schedule : built.schedule())
    reply.add_schedule(std::string(graph::name_of(schedule)));
  reply.set_backend(built.backend());
  run::describe(built.execution(), *reply.mutable_execution());
  for (const auto& kernel : built.graph().kernels) describe(*kernel, *reply.add_kernels());
  for (const run::CompiledFunction& function : built.functions()) describe(function, *reply.add_functions());
  reply.set_threads(built.threads());
  reply.set_build_s(built.build_s());
  reply.set_compiled(built.compiled());
  reply.set_scratch_bytes(built.scratch().bytes);
  return {};
}

Status list_kernel(Daemon& daemon, Session& caller, const v1::ListKernelRequest& request,
                   v1::ListKernelReply& reply) {
  EAGLE_ASSIGN_OR_RETURN(const auto loaded, graph_of(daemon, caller, request.session(), request.graph()));
  EAGLE_ASSIGN_OR_RETURN(const auto kernel, kernel_of(loaded->built(), request));
  std::string text;
  switch (request.form()) {
    case v1::LISTING_FORM_IR:
      text = kernel::to_text(*kernel);
      break;
    case v1::LISTING_FORM_LLVM: {
      EAGLE_ASSIGN_OR_RETURN(text, code_listing(daemon, caller, *kernel, "llvm"));
      break;
    }
    case v1::LISTING_FORM_ASSEMBLY: {
      EAGLE_ASSIGN_OR_RETURN(text, code_listing(daemon, caller, *kernel, "assembly"));
      break;
    }
    default:
      return {Reason::bad_value, "there is no form " + std::to_string(request.form()) +
                                     " of a listing; expected one of ListingForm, LISTING_FORM_IR (1) to "
                                     "LISTING_FORM_ASSEMBLY (3)"};
  }
  const std::size_t most = daemon.limits().listing_bytes;
  if (text.size() > most) {
    return {Reason::quota, "the listing has " + std::to_string(text.size()) + " bytes, over the limit of " +
                               std::to_string(most) + " (listing_bytes); look at a smaller kernel"};
  }
  reply.set_name(kernel->name);
  reply.set_text(std::move(text));
  if (request.form() != v1::LISTING_FORM_IR) reply.set_cpu(daemon.info().cpu);
  return {};
}

}  // namespace eagle::server
