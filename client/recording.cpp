#include "client/recording.h"

#include <google/protobuf/message.h>

#include <atomic>
#include <string>
#include <utility>

#include "eagle/client/reverse.h"
#include "eagle/v1/graph.pb.h"
#include "engine/diff/emit.h"
#include "engine/diff/names.h"
#include "engine/kernel/names.h"
#include "engine/plane/copy_view.h"

namespace eagle {
namespace {

std::uint64_t next_structure() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

void collect(const NodeKind& kind, std::vector<const Opaque*>& found);
void collect(const std::vector<BranchSpec>& branches, std::vector<const Opaque*>& found) {
  for (const BranchSpec& branch : branches) {
    for (const auto& [name, kind] : branch.nodes) collect(kind, found);
  }
}
void collect(const NodeKind& kind, std::vector<const Opaque*>& found) {
  if (const auto* const opaque = std::get_if<Opaque>(&kind)) found.push_back(opaque);
  if (const auto* const group = std::get_if<Group>(&kind)) collect(group->branches, found);
  if (const auto* const conditional = std::get_if<std::shared_ptr<const Conditional>>(&kind)) {
    for (const auto& [name, step] : (*conditional)->body) collect(step, found);
  }
}

// Calls `change` with every view within a message.
template <typename Change>
void for_each_view(google::protobuf::Message& message, const Change& change) {
  if (message.GetDescriptor() == v1::View::descriptor()) return change(static_cast<v1::View&>(message));
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const auto* const field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      for_each_view(*reflection.MutableMessage(&message, field), change);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i)
      for_each_view(*reflection.MutableRepeatedMessage(&message, field, i), change);
  }
}

}  // namespace

Status place(const Host& host, const Buffer& buffer, std::uint32_t index, v1::GraphDescription& description,
             Backing& backing) {
  const std::optional<PlaneAddress> at = host.find(buffer.data(), buffer.bytes());
  if (!at) return {Reason::internal, "fresh memory of the session is nowhere"};
  backing.private_planes.resize(static_cast<std::size_t>(description.planes_size()));
  backing.keep_alive.push_back(at->keep_alive);
  std::uint32_t home = index;
  for (int i = 0; i < description.planes_size(); ++i) {
    const v1::PlaneDeclaration& plane = description.planes(i);
    if (static_cast<std::uint32_t>(i) != index && plane.has_plane() && plane.plane().id() == at->plane.id &&
        plane.plane().generation() == at->plane.generation)
      home = static_cast<std::uint32_t>(i);
  }
  v1::PlaneDeclaration& declared = *description.mutable_planes(static_cast<int>(index));
  if (home == index) {
    declared.mutable_plane()->set_id(at->plane.id);
    declared.mutable_plane()->set_generation(at->plane.generation);
    declared.set_bytes(at->plane_bytes);
    declared.set_label(at->label);
  } else {
    declared.mutable_scratch();  // which nobody uses
    declared.set_bytes(1);
  }
  if (home == index && at->offset == 0) return {};
  for (v1::Stage& stage : *description.mutable_stages()) {
    for_each_view(stage, [&](v1::View& view) {
      if (view.plane() != index) return;
      view.set_plane(home);
      view.set_offset(view.offset() + static_cast<std::int64_t>(at->offset));
    });
  }
  return {};
}

plane::View view_of_array(const ArrayView& array) {
  return {0, 0, array.dtype, array.item_bytes, array.shape, array.strides};
}

std::uint64_t Record::bytes() const { return recording_->bytes(); }
std::uint64_t Record::structure() const { return recording_->structure; }
std::uint64_t Record::launches() const { return recording_->launches(); }
std::vector<std::pair<std::string, std::string>> Record::carried() const {
  return diff::carried(*recording_->program);
}

Recording::Recording(const Session& its_session) : session(its_session), structure(next_structure()) {}
Recording::~Recording() = default;

Status Recording::prepare(Stages stages, const v1::GraphDescription& whole, const Backing& backing) {
  description = std::make_shared<v1::GraphDescription>(whole);
  EAGLE_ASSIGN_OR_RETURN(graph::Graph read_graph,
                         graph::read(whole, session.remote() ? graph::PrivateKernelPlanes::refused
                                                             : graph::PrivateKernelPlanes::allowed));
  graph = std::make_shared<const graph::Graph>(std::move(read_graph));
  program = std::make_unique<const diff::Program>(*graph);
  EAGLE_ASSIGN_OR_RETURN(plan, diff::plan_record(*program));
  private_planes = backing.private_planes;
  keep_alive = backing.keep_alive;
  device = backing.device;
  std::vector<const Opaque*> nodes;
  for (const auto& stage : stages) collect(stage->branches, nodes);
  program->for_each([&](const diff::Step& step) {
    if (step.as<graph::HostNode>() == nullptr) return;
    const Opaque& opaque = *nodes.at(step.host);
    const bool has_the_gpu = graph::works_on_gpu(opaque.tier) && !device.empty();
    callables.push_back({step.node->label, opaque.reads, opaque.writes, has_the_gpu, {}});
  });
  if (plan.bytes > 0) {
    EAGLE_ASSIGN_OR_RETURN(
        memory, session.allocate(static_cast<std::uint64_t>(plan.bytes), "record", Contents::zeros, device));
  }
  return {};
}

StatusOr<std::shared_ptr<Recording>> Recording::add_to(const Session& session, Stages stages,
                                                       v1::GraphDescription& description, Backing& backing) {
  const std::shared_ptr<Recording> made(new Recording(session));
  EAGLE_RETURN_IF_ERROR(made->prepare(stages, description, backing));
  if (made->memory) {
    const auto index = static_cast<std::uint32_t>(description.planes_size());
    description.add_planes();
    made->copies = diff::add_copies(*made->program, made->plan, index, description);
    EAGLE_RETURN_IF_ERROR(place(*session.host(), *made->memory, index, description, backing));
  }
  made->wrap(backing.calls, made);
  return made;
}

StatusOr<std::shared_ptr<Recording>> Recording::of(const Session& session, Stages stages,
                                                   const v1::GraphDescription& description, Backing& backing,
                                                   v1::GraphDescription& copies) {
  const std::shared_ptr<Recording> made(new Recording(session));
  EAGLE_RETURN_IF_ERROR(made->prepare(stages, description, backing));
  if (made->memory) {
    copies.set_name("record");
    *copies.mutable_planes() = description.planes();
    const auto index = static_cast<std::uint32_t>(copies.planes_size());
    copies.add_planes();
    made->copies = diff::add_copies(*made->program, made->plan, index, copies);
    EAGLE_RETURN_IF_ERROR(place(*session.host(), *made->memory, index, copies, backing));
  }
  made->wrap(backing.calls, made);
  return made;
}

// The backing belongs to what is recorded, which holds this recording as well.
void Recording::wrap(std::vector<std::function<Status()>>& calls, const std::shared_ptr<Recording>& self) {
  for (std::size_t host = 0; host < calls.size() && host < callables.size(); ++host) {
    calls[host] = [self, host, callable = std::move(calls[host])] { return self->call(host, callable); };
  }
}

Status Recording::call(std::size_t host, const std::function<Status()>& callable) {
  if (runs_ != 1) return callable();  // a record is of one run
  const diff::KeptCalls& wanted = plan.calls[host];
  Call call;
  for (std::size_t i = 0; i < callables[host].reads.size(); ++i) {
    call.reads.emplace_back();
    if (!wanted.reads[i]) continue;
    EAGLE_ASSIGN_OR_RETURN(call.reads.back(), keep(callables[host].reads[i].second, callables[host]));
  }
  EAGLE_RETURN_IF_ERROR(callable());
  for (std::size_t i = 0; wanted.writes && i < callables[host].writes.size(); ++i) {
    EAGLE_ASSIGN_OR_RETURN(Bytes bytes, keep(callables[host].writes[i].second, callables[host]));
    call.writes.push_back(std::move(bytes));
  }
  callables[host].calls.push_back(std::move(call));
  return {};
}

StatusOr<Recording::Bytes> Recording::keep(const ArrayView& array, const Callable& callable) {
  if (callable.has_the_gpu && session.copied(array)) EAGLE_RETURN_IF_ERROR(session.fetch(array));
  const plane::View from = view_of_array(array);
  const auto bytes = static_cast<std::uint64_t>(plane::elements(from)) * array.item_bytes;
  if (call_bytes_ + bytes > most_call_bytes) {
    return Status(Reason::graph_limit,
                  "node " + kernel::quote_name(callable.label) +
                      ": what its calls in this launch read and wrote is more "
                      "than " +
                      std::to_string(most_call_bytes) +
                      " bytes to record; take fewer trips a launch, or write the node as a kernel");
  }
  call_bytes_ += bytes;
  auto packed = std::make_shared<std::vector<std::byte>>(bytes);
  plane::copy_view(from, static_cast<const std::byte*>(array.data), diff::packed(from), packed->data());
  return Bytes(std::move(packed));
}

void Recording::begin(std::int64_t runs) {
  runs_ = runs;
  ++launches_;
  state_ = State::incomplete;
  call_bytes_ = 0;
  if (launched_params_changed_ != params_changed) {
    launched_params_ = params;
    launched_params_changed_ = params_changed;
  }
  for (Callable& callable : callables) callable.calls.clear();
}

void Recording::finish(std::vector<std::int64_t> trips) {
  state_ = runs_ == 1 ? State::whole : runs_ == 0 ? State::none : State::several;
  trips_ = std::move(trips);
}

Status Recording::check(std::string_view method) const {
  const std::string where(method);
  if (superseded_) {
    return {Reason::graph_state,
            where + ": the graph was bound to other arrays since this pass was made; make another one"};
  }
  switch (state_) {
    case State::whole:
      return {};
    case State::none:
      return {Reason::graph_state,
              where + ": nothing is recorded yet; launch the graph, or run the model, first"};
    case State::incomplete:
      return {
          Reason::graph_state,
          where +
              ": the last launch or run did not end well, or left samples at different steps, so that its "
              "record is incomplete; launch or run it again"};
    case State::several:
      return {Reason::graph_state,
              where + ": the last launch ran the graph " + std::to_string(runs_) +
                  " times, and a record is of one run; launch(1), with a repeat_while in the "
                  "graph for what is to be repeated"};
  }
  return {};
}

}  // namespace eagle
