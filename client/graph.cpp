#include "eagle/client/graph.h"

#include <exception>
#include <mutex>
#include <utility>

#include "client/describe.h"
#include "client/host.h"
#include "eagle/util/Busy.h"
#include "eagle/v1/graph.pb.h"
#include "engine/graph/edges.h"
#include "engine/graph/schedule.h"
#include "engine/view/text.h"

namespace eagle {
namespace {

using StagePtr = std::shared_ptr<const StageSpec>;

Status busy(std::string_view method) {
  return {Reason::busy,
          std::string(method) +
              ": another call is still running on this Graph; give each thread its own Graph, or wait "
              "for it"};
}

// Where it happened, once: a session that refuses names the call itself.
Status within_call(const Status& status, std::string_view method) {
  const bool named = status.message().compare(0, method.size() + 2, std::string(method) + ": ") == 0;
  return named ? status : status.within(method);
}

graph::StageSchedule schedule_named(std::string_view name) {
  using graph::StageSchedule;
  return name == graph::name_of(StageSchedule::branch_tasks) ? StageSchedule::branch_tasks
                                                             : StageSchedule::work_share;
}

// Every conditional of a stage, nested ones included.
template <typename Visit>
void for_each_conditional(const NodeKind& kind, const Visit& visit) {
  const auto* conditional = std::get_if<std::shared_ptr<const Conditional>>(&kind);
  if (conditional == nullptr || *conditional == nullptr) return;
  visit(**conditional);
  for (const auto& [name, step] : (*conditional)->body) for_each_conditional(step, visit);
}

template <typename Visit>
void for_each_conditional(const StageSpec& stage, const Visit& visit) {
  for (const BranchSpec& branch : stage.branches) {
    for (const auto& [name, kind] : branch.nodes) for_each_conditional(kind, visit);
  }
}

// Guards Conditional::graph of all conditionals.
std::mutex& conditionals_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

Opaque opaque(std::function<Status()> call, Planes planes, HostTier tier) {
  return {std::move(call), std::move(planes.reads), std::move(planes.writes), tier};
}

NodeKind skippable(std::vector<std::pair<std::string, NodeKind>> body, SkipGuard guard) {
  auto conditional = std::make_shared<Conditional>();
  conditional->guard = std::move(guard);
  conditional->body = std::move(body);
  return std::shared_ptr<const Conditional>(std::move(conditional));
}

NodeKind repeat_while(std::vector<std::pair<std::string, NodeKind>> body, SkipGuard guard,
                      std::int64_t max_iterations) {
  auto conditional = std::make_shared<Conditional>();
  conditional->guard = std::move(guard);
  conditional->body = std::move(body);
  conditional->max_iterations = max_iterations;
  return std::shared_ptr<const Conditional>(std::move(conditional));
}

struct Graph::State {
  State(Session its_session, GraphOptions its_options)
      : session(std::move(its_session)), options(std::move(its_options)) {}

  Session session;
  GraphOptions options;
  util::Busy busy;  // build, launch and the adds: one caller at a time
  std::shared_ptr<const int> identity = std::make_shared<const int>(0);  // what conditionals point to

  // Looking takes the mutex only, so it works while a call is running.
  std::mutex mutex;
  std::vector<StagePtr> stages;
  std::vector<std::shared_ptr<const void>> keep_alive;  // every array that was added
  std::shared_ptr<const graph::Graph> looked;           // of the first `looked_stages` stages
  std::size_t looked_stages = 0;
  Backing backing;  // of `built`, and outliving it
  std::unique_ptr<HostGraph> built;

  [[nodiscard]] const Host& host() const { return *session.host(); }

  StatusOr<graph::Graph> read(const v1::GraphDescription& description) const {
    return graph::read(description, host().remote() ? graph::PrivateKernelPlanes::refused
                                                    : graph::PrivateKernelPlanes::allowed);
  }

  Status add(std::string_view method, StageSpec spec);
  Status check_conditionals(const StageSpec& spec) const;
  StatusOr<Backing> check_stage(const StagePtr& stage) const;
  Status build();
  StatusOr<std::shared_ptr<const graph::Graph>> look();
  StatusOr<LaunchReport> launch(std::int64_t n, const LaunchOptions& launch_options);
};

Status Graph::State::check_conditionals(const StageSpec& spec) const {
  const std::scoped_lock lock(conditionals_mutex());
  Status status;
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

// Only the new stage is read, so that n adds cost n stages. When it is refused, the whole is read once more
// for the message: that one counts nodes as the caller does.
StatusOr<Backing> Graph::State::check_stage(const StagePtr& stage) const {
  v1::GraphDescription alone;
  EAGLE_ASSIGN_OR_RETURN(Backing stage_backing, describe_graph(host(), options.name, {&stage, 1}, alone));
  const Status refused = read(alone).status();
  if (refused.ok()) return stage_backing;

  std::vector<StagePtr> all = stages;
  all.push_back(stage);
  v1::GraphDescription whole;
  if (!describe_graph(host(), options.name, all, whole).ok()) return refused;
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
  for_each_conditional(*stage, [&](const Conditional& conditional) { conditional.graph = identity; });
  stages.push_back(std::move(stage));
  std::move(stage_backing->keep_alive.begin(), stage_backing->keep_alive.end(),
            std::back_inserter(keep_alive));
  return {};
}

Status Graph::State::build() {
  const util::Busy::Guard guard(busy);
  if (!guard.entered()) return eagle::busy("build");
  if (built)
    return {Reason::graph_state, "build: this graph is built already; launch it, or make another Graph"};
  if (stages.empty()) return {Reason::graph_state, "build: this graph is empty; add nodes first"};

  v1::GraphDescription description;
  StatusOr<Backing> whole = describe_graph(host(), options.name, stages, description);
  if (!whole.ok()) return whole.status().within("build");
  auto host_graph = session.host()->build(description, whole->private_planes);
  if (!host_graph.ok()) return within_call(host_graph.status(), "build");

  const std::scoped_lock lock(mutex);
  backing = std::move(*whole);
  built = std::move(*host_graph);
  return {};
}

StatusOr<std::shared_ptr<const graph::Graph>> Graph::State::look() {
  const std::scoped_lock lock(mutex);
  if (looked && looked_stages == stages.size()) return looked;
  auto fresh = std::make_shared<graph::Graph>();
  fresh->name = options.name;
  if (!stages.empty()) {
    v1::GraphDescription description;
    EAGLE_RETURN_IF_ERROR(describe_graph(host(), options.name, stages, description).status());
    EAGLE_ASSIGN_OR_RETURN(*fresh, read(description));
  }
  looked = std::move(fresh);
  looked_stages = stages.size();
  return looked;
}

StatusOr<LaunchReport> Graph::State::launch(std::int64_t n, const LaunchOptions& launch_options) {
  const util::Busy::Guard guard(busy);
  if (!guard.entered()) return eagle::busy("launch");
  if (!built) return Status(Reason::graph_state, "launch: this graph is not built; call build() first");
  if (n < 0) {
    return Status(Reason::bad_value,
                  "launch: n is " + std::to_string(n) + "; give the number of replays, at least 0");
  }

  // What the caller's own code had to say comes back as it was, whatever the host made of it on the way.
  Status failure;
  std::exception_ptr thrown;
  const auto host_call = [&](std::uint32_t call) -> Status {
    if (call >= backing.calls.size()) {
      return {Reason::internal, "there is no host call " + std::to_string(call) + " in this graph"};
    }
    try {
      failure = backing.calls[call]();
      return failure;
    } catch (...) {
      thrown = std::current_exception();
      return {Reason::host_call_failed, "the callable threw an exception"};
    }
  };
  auto report = built->launch(n, launch_options, host_call);
  if (thrown) std::rethrow_exception(thrown);
  if (!failure.ok()) return failure;
  if (!report.ok()) return within_call(report.status(), "launch");
  return report;
}

Graph::Graph(Session session, GraphOptions options)
    : state_(std::make_unique<State>(std::move(session), std::move(options))) {}
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

Status Graph::build() { return state_->build(); }

StatusOr<LaunchReport> Graph::launch(std::int64_t n, const LaunchOptions& options) {
  return state_->launch(n, options);
}

bool Graph::built() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->built != nullptr;
}

std::vector<std::string> Graph::schedule() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->built ? state_->built->schedule() : std::vector<std::string>();
}

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

StatusOr<std::string> Graph::show() const {
  EAGLE_ASSIGN_OR_RETURN(const auto looked, state_->look());
  view::TextOptions options;
  for (const std::string& name : schedule()) options.schedule.push_back(schedule_named(name));
  return view::to_text(*looked, options);
}

StatusOr<std::string> Graph::host_picture() const {
  HostGraph* built = nullptr;
  {
    const std::scoped_lock lock(state_->mutex);
    built = state_->built.get();  // set once, gone with the graph
  }
  if (built == nullptr)
    return Status(Reason::graph_state, "host_picture: this graph is not built; call build() first");
  return built->picture();
}

const Session& Graph::session() const { return state_->session; }

}  // namespace eagle
