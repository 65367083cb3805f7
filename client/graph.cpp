#include "eagle/client/graph.h"

#include <google/protobuf/arena.h>

#include <functional>
#include <mutex>
#include <utility>

#include "client/counters.h"
#include "client/graph_state.h"
#include "client/recording.h"
#include "eagle/client/reverse.h"
#include "eagle/v1/graph.pb.h"
#include "engine/graph/edges.h"
#include "engine/graph/schedule.h"
#include "engine/kernel/names.h"
#include "engine/view/picture.h"

namespace eagle {
namespace {

// Calls `visit` with every node of a stage: those of bodies too, each after the conditional around it.
using Visit = std::function<void(const NodeKind&)>;
void for_each_node(const std::vector<BranchSpec>& branches, const Visit& visit);
void for_each_node(const NodeKind& kind, const Visit& visit) {
  visit(kind);
  if (const auto* group = std::get_if<Group>(&kind)) for_each_node(group->branches, visit);
  const auto* conditional = std::get_if<std::shared_ptr<const Conditional>>(&kind);
  if (conditional == nullptr || *conditional == nullptr) return;
  for (const auto& [name, step] : (*conditional)->body) for_each_node(step, visit);
}
void for_each_node(const std::vector<BranchSpec>& branches, const Visit& visit) {
  for (const BranchSpec& branch : branches) {
    for (const auto& [name, kind] : branch.nodes) for_each_node(kind, visit);
  }
}

void for_each_conditional(const StageSpec& stage, const std::function<void(const Conditional&)>& visit) {
  for_each_node(stage.branches, [&](const NodeKind& kind) {
    const auto* conditional = std::get_if<std::shared_ptr<const Conditional>>(&kind);
    if (conditional != nullptr && *conditional != nullptr) visit(**conditional);
  });
}

void for_each_array(const NodeKind& kind, const std::function<void(const ArrayView&)>& visit) {
  if (const auto* plan = std::get_if<BoundPlan>(&kind)) {
    for (const auto& [name, argument] : plan->arguments) {
      if (const auto* array = std::get_if<ArrayView>(&argument)) visit(*array);
    }
  } else if (const auto* opaque = std::get_if<Opaque>(&kind)) {
    for (const auto& [name, array] : opaque->reads) visit(array);
    for (const auto& [name, array] : opaque->writes) visit(array);
  } else if (const auto* copy = std::get_if<Copy>(&kind)) {
    visit(copy->source);
    visit(copy->destination);
    if (copy->index) visit(*copy->index);
  } else if (const auto* reduce = std::get_if<Reduce>(&kind)) {
    visit(reduce->x);
    visit(reduce->out);
  } else if (const auto* conditional = std::get_if<std::shared_ptr<const Conditional>>(&kind)) {
    if (*conditional == nullptr) return;
    visit((*conditional)->guard.count.second);
    if ((*conditional)->guard.baseline) visit((*conditional)->guard.baseline->second);
    if ((*conditional)->iterations) visit(*(*conditional)->iterations);
  }
}

// The scratch planes that the nodes of a stage touch.
void for_each_scratch(const StageSpec& stage, const std::function<void(const ScratchPlane&)>& visit) {
  for_each_node(stage.branches, [&](const NodeKind& kind) {
    for_each_array(kind, [&](const ArrayView& array) {
      if (array.scratch) visit(*array.scratch);
    });
  });
}

// Guards Conditional::graph and ScratchPlane::graph of all of them.
std::mutex& conditionals_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

Status busy(std::string_view method) {
  return {Reason::busy,
          std::string(method) +
              ": another call is still running on this Graph; give each thread its own Graph, or wait "
              "for it"};
}

Status within_call(const Status& status, std::string_view method) {
  const bool named = status.message().compare(0, method.size() + 2, std::string(method) + ": ") == 0;
  return named ? status : status.within(method);
}

StatusOr<graph::Graph> read_for(const Host& host, const v1::GraphDescription& description) {
  return graph::read(
      description, host.remote() ? graph::PrivateKernelPlanes::refused : graph::PrivateKernelPlanes::allowed);
}

Opaque opaque(std::function<Status()> call, Planes planes, HostTier tier) {
  return {std::move(call), std::move(planes.reads), std::move(planes.writes), tier, nullptr};
}

Reduce reduce(ArrayView x, ArrayView out, ReduceOptions options) {
  return {std::move(x), std::move(out), options.op, options.compensated};
}

NodeKind copy(ArrayView source, ArrayView destination, std::optional<ArrayView> index) {
  return Copy{std::move(source), std::move(destination), std::move(index)};
}

NodeKind skippable(std::vector<std::pair<std::string, NodeKind>> body, SkipGuard guard) {
  auto conditional = std::make_shared<Conditional>();
  conditional->guard = std::move(guard);
  conditional->body = std::move(body);
  return std::shared_ptr<const Conditional>(std::move(conditional));
}

NodeKind repeat_while(std::vector<std::pair<std::string, NodeKind>> body, SkipGuard guard,
                      std::int64_t max_iterations, std::optional<ArrayView> iterations) {
  auto conditional = std::make_shared<Conditional>();
  conditional->guard = std::move(guard);
  conditional->body = std::move(body);
  conditional->max_iterations = max_iterations;
  conditional->iterations = std::move(iterations);
  return std::shared_ptr<const Conditional>(std::move(conditional));
}

Status Graph::State::check_conditionals(const StageSpec& spec) const {
  const std::scoped_lock lock(conditionals_mutex());
  Status status;
  for_each_scratch(spec, [&](const ScratchPlane& plane) {
    const auto owner = plane.graph.lock();
    if (owner && owner != identity) {
      status = {
          Reason::scratch_plane,
          "the scratch plane " + kernel::quote_name(plane.name) +
              " is another graph's, and only nodes of that graph can touch it; make one with scratch() of "
              "this graph, or use an array"};
    }
  });
  for_each_conditional(spec, [&](const Conditional& conditional) {
    const auto owner = conditional.graph.lock();
    if (owner && owner != identity) {
      status = {Reason::conditional_in_use,
                "this conditional already belongs to another graph; make a new one with skippable() or "
                "repeat_while()"};
    }
  });
  return status;
}

StatusOr<Backing> Graph::State::describe(Stages some, v1::GraphDescription& message) const {
  StatusOr<Backing> described = describe_graph(host(), options.name, some, message);
  message.set_derivatives(options.derivatives);
  return described;
}

// Only the new stage is read, so that n adds cost n stages. When it is refused, the whole is read once more
// for the message: that one counts nodes as the caller does.
StatusOr<Backing> Graph::State::check_stage(const StagePtr& stage) const {
  v1::GraphDescription alone;
  EAGLE_ASSIGN_OR_RETURN(Backing stage_backing, describe({&stage, 1}, alone));
  const Status refused = read(alone).status();
  if (refused.ok()) return stage_backing;

  std::vector<StagePtr> all = stages;
  all.push_back(stage);
  v1::GraphDescription whole;
  if (!describe(all, whole).ok()) return refused;
  const Status exact = read(whole).status();
  return exact.ok() ? refused : exact;
}

Status Graph::State::add(std::string_view method, StageSpec spec) {
  const util::Busy::Guard guard(busy);
  if (!guard.entered()) return eagle::busy(method);
  if (built) {
    return {Reason::graph_state, std::string(method) +
                                     ": this graph is built, and a built graph stays as it is; "
                                     "make another Graph"};
  }
  EAGLE_RETURN_IF_ERROR(check_conditionals(spec).within(method));
  auto stage = std::make_shared<const StageSpec>(std::move(spec));
  StatusOr<Backing> stage_backing = check_stage(stage);
  if (!stage_backing.ok()) return stage_backing.status().within(method);

  const std::scoped_lock lock(mutex, conditionals_mutex());
  claim(*stage);
  stages.push_back(std::move(stage));
  std::move(stage_backing->keep_alive.begin(), stage_backing->keep_alive.end(),
            std::back_inserter(keep_alive));
  return {};
}

// With the mutex of conditionals held.
void Graph::State::claim(const StageSpec& stage) const {
  for_each_conditional(stage, [&](const Conditional& conditional) { conditional.graph = identity; });
  for_each_scratch(stage, [&](const ScratchPlane& plane) { plane.graph = identity; });
}

void Graph::State::adopt(std::vector<StagePtr> fresh, Backing its_backing) {
  std::vector<std::shared_ptr<const void>> gone;  // the backing holds what is used now
  std::shared_ptr<const graph::Graph> unlooked;
  {
    const std::scoped_lock lock(mutex, conditionals_mutex());
    for (const StagePtr& stage : fresh) claim(*stage);
    stages.swap(fresh);
    std::swap(backing, its_backing);
    keep_alive.swap(gone);
    looked.swap(unlooked);
  }
  // What was there before goes now, without the mutexes: an owner of an array may wait for whoever looks.
}

Status Graph::State::build(const std::vector<kernel::PolicyChoice>& chosen) {
  const util::Busy::Guard guard(busy);
  if (!guard.entered()) return eagle::busy("build");
  if (built)
    return {Reason::graph_state, "build: this graph is built already; launch it, or make another Graph"};
  if (stages.empty()) return {Reason::graph_state, "build: this graph is empty; add nodes first"};

  // Thousands of small messages, given back in one piece.
  google::protobuf::Arena arena;
  auto& description = *google::protobuf::Arena::CreateMessage<v1::GraphDescription>(&arena);
  StatusOr<Backing> whole = describe(stages, description);
  if (!whole.ok()) return whole.status().within("build");
  if (!chosen.empty()) EAGLE_RETURN_IF_ERROR(apply_dispatch(chosen, description).within("build"));
  std::shared_ptr<Recording> record;
  if (options.recorded) {
    auto made = Recording::add_to(session, stages, description, *whole);
    if (!made.ok()) return made.status().within("build");
    record = *std::move(made);
  }
  auto host_graph = session.host()->build_with(description, whole->private_planes, whole->works);
  if (!host_graph.ok()) return within_call(host_graph.status(), "build");

  counting::Atomics& counts = counting::of_process();
  counting::add(counts.graph_builds);
  counting::add(counts.compiles, (*host_graph)->compiled() ? 1 : 0);
  const std::scoped_lock lock(mutex);  // after `whole`, which takes what was there before
  std::swap(backing, *whole);
  dispatch = chosen;
  recording.swap(record);
  built = std::move(*host_graph);
  brief_replays = built->brief_replays();
  return {};
}

StatusOr<std::shared_ptr<const graph::Graph>> Graph::State::look() {
  const std::scoped_lock lock(mutex);
  if (looked && looked_stages == stages.size()) return looked;
  auto fresh = std::make_shared<graph::Graph>();
  fresh->name = options.name;
  if (!stages.empty()) {
    v1::GraphDescription description;
    EAGLE_RETURN_IF_ERROR(describe(stages, description).status());
    EAGLE_ASSIGN_OR_RETURN(*fresh, read(description));
  }
  looked = std::move(fresh);
  looked_stages = stages.size();
  return looked;
}

Graph::Graph(Session session, GraphOptions options)
    : state_(std::make_shared<State>(std::move(session), std::move(options))) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Status Graph::add(BoundPlan plan, std::string_view name) {
  StageSpec spec;
  spec.branches.push_back({{{std::string(name), std::move(plan)}}});
  return state_->add("add", std::move(spec));
}

Status Graph::add_node(NodeKind node, std::string_view name) {
  StageSpec spec;
  spec.branches.push_back({{{std::string(name), std::move(node)}}});
  return state_->add("add_node", std::move(spec));
}

Status Graph::add_group(std::vector<BranchSpec> branches) {
  return state_->add("add_group", {std::move(branches), true});
}

StatusOr<ArrayView> Graph::scratch(const Shape& shape, DType dtype, std::string_view name) {
  const std::uint32_t item = plane::bytes_of(dtype);
  if (item == 0) {
    return Status(Reason::wrong_dtype,
                  "scratch: planes hold float64, float32, int64, int32 or bool; choose one of those");
  }
  EAGLE_ASSIGN_OR_RETURN(const std::uint64_t bytes, Session::bytes_for(shape, item));
  auto plane = std::make_shared<ScratchPlane>();
  plane->name = name;
  plane->bytes = bytes;
  plane->graph = state_->identity;
  return ArrayView{nullptr, dtype,           item, shape, row_major_strides(shape, item), false,
                   nullptr, std::move(plane)};
}

Status Graph::build(const std::vector<kernel::PolicyChoice>& dispatch) { return state_->build(dispatch); }

bool Graph::built() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->built != nullptr;
}

std::string Graph::backend() const { return state_->built ? state_->built->backend() : std::string(); }

std::vector<std::string> Graph::schedule() const {
  const std::scoped_lock lock(state_->mutex);
  if (!state_->built) return {};
  std::vector<std::string> schedule = state_->built->schedule();
  if (state_->hidden_nodes() > 0) schedule.erase(schedule.begin());
  return schedule;
}

StatusOr<std::shared_ptr<const graph::Graph>> Graph::description() const { return state_->look(); }

StatusOr<std::vector<Edge>> Graph::edges() const {
  EAGLE_ASSIGN_OR_RETURN(const auto looked, state_->look());
  return graph::edges(*looked);
}

std::vector<std::string> Graph::node_labels() const {
  std::vector<std::string> labels;
  const auto looked = state_->look();
  if (!looked.ok()) return labels;
  for (const graph::Leaf& leaf : graph::leaves(**looked)) labels.push_back(leaf.node->label);
  return labels;
}

view::PictureOptions Graph::picture_options() const {
  view::PictureOptions options;
  for (const std::string& name : schedule()) options.schedule.push_back(graph::schedule_named(name));
  if (const std::string built_on = backend(); !built_on.empty()) options.backend = built_on;
  const std::scoped_lock lock(state_->mutex);
  options.recorded = state_->options.recorded;
  return options;
}

StatusOr<std::string> Graph::picture(PictureFormat format) const {
  EAGLE_ASSIGN_OR_RETURN(const auto looked, state_->look());
  return view::draw(*looked, format, picture_options());
}

StatusOr<view::Figure> Graph::figure() const {
  EAGLE_ASSIGN_OR_RETURN(const auto looked, state_->look());
  return view::make_figure(*looked, picture_options());
}

StatusOr<std::string> Graph::show() const { return picture(PictureFormat::text); }
StatusOr<std::string> Graph::to_mermaid() const { return picture(PictureFormat::mermaid); }
StatusOr<std::string> Graph::to_dot() const { return picture(PictureFormat::dot); }
StatusOr<std::string> Graph::to_svg() const { return picture(PictureFormat::svg); }

StatusOr<graph::PairExplanation> Graph::explain(const NodeReference& node, const NodeReference& other) const {
  EAGLE_ASSIGN_OR_RETURN(const auto looked, state_->look());
  auto found = graph::explain(*looked, node, other);
  if (!found.ok()) return found.status().within("explain");
  return found;
}

StatusOr<graph::NodeExplanation> Graph::explain(const NodeReference& node) const {
  EAGLE_ASSIGN_OR_RETURN(const auto looked, state_->look());
  auto found = graph::explain(*looked, node, picture_options().schedule);
  if (!found.ok()) return found.status().within("explain");
  found->execution = run::execution_of_leaf(execution(), found->node.index);
  return found;
}

// The host's own graph: set once, gone with this one.
StatusOr<const HostGraph*> Graph::State::host_graph(std::string_view method) {
  const std::scoped_lock lock(mutex);
  if (built == nullptr) {
    return Status(Reason::graph_state, std::string(method) + ": this graph is not built; call build() first");
  }
  return static_cast<const HostGraph*>(built.get());
}

StatusOr<std::string> Graph::timeline() const {
  EAGLE_ASSIGN_OR_RETURN(const HostGraph* const built, state_->host_graph("timeline"));
  return built->timeline();
}

StatusOr<std::string> Graph::host_picture(PictureFormat format) const {
  EAGLE_ASSIGN_OR_RETURN(const HostGraph* const built, state_->host_graph("host_picture"));
  return built->picture(format);
}

StatusOr<std::string> Graph::host_explanation(const NodeReference& node,
                                              const std::optional<NodeReference>& other) const {
  EAGLE_ASSIGN_OR_RETURN(const HostGraph* const built, state_->host_graph("host_explanation"));
  return built->explanation(node, other);
}

const Session& Graph::session() const { return state_->session; }

void Graph::set_recorded(bool recorded) {
  const std::scoped_lock lock(state_->mutex);
  state_->options.recorded = recorded;
}

graph::ScratchLayout Graph::scratch_layout() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->built ? state_->built->scratch() : graph::ScratchLayout();
}

Execution Graph::execution() const {
  const std::scoped_lock lock(state_->mutex);
  if (!state_->built) return {};
  Execution execution = state_->built->execution();
  for (ExecutedGroup& group : execution.groups) {
    for (auto& function : group.functions) {
      for (ExecutedNode& node : function) node.index -= state_->hidden_nodes();
    }
  }
  return execution;
}

StatusOr<Record> Graph::record() const {
  const std::scoped_lock lock(state_->mutex);
  if (!state_->built)
    return Status(Reason::graph_state, "record: this graph is not built; call build(), then launch it");
  if (!state_->recording) {
    return Status(Reason::graph_state,
                  "record: this graph was built without a record; make it with Graph(record=True), or "
                  "build(record=True)");
  }
  return Record(state_->recording);
}

std::uint32_t Graph::State::hidden_nodes() const { return recording ? recording->copies : 0; }

StatusOr<Graph> Graph::of_description(const Session& session, const v1::GraphDescription& description,
                                      Backing backing) {
  auto state = std::make_shared<State>(session, GraphOptions{description.name(), false, true});
  EAGLE_ASSIGN_OR_RETURN(graph::Graph looked, state->read(description));
  state->looked = std::make_shared<const graph::Graph>(std::move(looked));
  EAGLE_ASSIGN_OR_RETURN(state->built,
                         session.host()->build_with(description, backing.private_planes, backing.works));
  state->backing = std::move(backing);
  state->brief_replays = state->built->brief_replays();
  counting::Atomics& counts = counting::of_process();
  counting::add(counts.graph_builds);
  counting::add(counts.compiles, state->built->compiled() ? 1 : 0);
  return Graph(std::move(state));
}

Status check_plan(const Session& session, const BoundPlan& plan) {
  StageSpec spec;
  spec.branches.push_back({{{plan.kernel ? plan.kernel->name : "", plan}}});
  const auto stage = std::make_shared<const StageSpec>(std::move(spec));
  v1::GraphDescription alone;
  EAGLE_RETURN_IF_ERROR(describe_graph(*session.host(), "", {&stage, 1}, alone).status());
  alone.set_derivatives(true);
  EAGLE_RETURN_IF_ERROR(read_for(*session.host(), alone).status());
  counting::add(counting::of_process().binds);
  return {};
}

}  // namespace eagle
