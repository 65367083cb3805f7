// Changing a built graph: other numbers for Params, other arrays for planes.
#include <map>
#include <mutex>
#include <utility>

#include "client/counters.h"
#include "client/graph_state.h"
#include "client/recording.h"
#include "eagle/v1/graph.pb.h"

namespace eagle {
namespace {

// The arrays that nodes get, by the number of the node and what is replaced in it.
using Replacements = std::multimap<std::uint32_t, std::pair<std::uint32_t, const ArrayView*>>;

// Writes stages anew with some arrays replaced. Nodes are counted as engine/graph/address.h counts them.
class Replacing {
public:
  explicit Replacing(const Replacements& replacements) : replacements_(replacements) {}

  StagePtr stage(const StageSpec& spec) {
    auto copy = std::make_shared<StageSpec>(spec);
    branches(copy->branches);
    return copy;
  }

private:
  void branches(std::vector<BranchSpec>& specs) {
    for (BranchSpec& branch : specs) {
      for (auto& [name, kind] : branch.nodes) node(kind);
    }
  }

  void node(NodeKind& kind) {
    if (auto* const group = std::get_if<Group>(&kind)) return branches(group->branches);
    const auto [first, last] = replacements_.equal_range(nodes_++);
    for (auto it = first; it != last; ++it) replace(kind, it->second.first, *it->second.second);
    if (auto* const conditional = std::get_if<std::shared_ptr<const Conditional>>(&kind)) {
      auto copy = std::make_shared<Conditional>(**conditional);
      for (auto& [name, step] : copy->body) node(step);
      *conditional = std::move(copy);
    }
  }

  static void replace(NodeKind& kind, std::uint32_t argument, const ArrayView& array) {
    if (auto* const plan = std::get_if<BoundPlan>(&kind)) {
      const std::string& name = plan->kernel->arguments[argument].name;
      for (auto& [bound, value] : plan->arguments) {
        if (bound == name) value = array;
      }
    } else if (auto* const copy = std::get_if<Copy>(&kind)) {
      (argument == 0 ? copy->source : copy->destination) = array;
    } else if (auto* const reduce = std::get_if<Reduce>(&kind)) {
      (argument == 0 ? reduce->x : reduce->out) = array;
    }
  }

  const Replacements& replacements_;
  std::uint32_t nodes_ = 0;
};

}  // namespace

Status Graph::State::update(const std::vector<ParamUpdate>& params) {
  const util::Busy::Guard guard(busy);
  if (!guard.entered()) return eagle::busy("update");
  if (!built) return {Reason::graph_state, "update: this graph is not built; call build() first"};
  if (!recording) {
    EAGLE_RETURN_IF_ERROR(within_call(built->update(params), "update"));
  } else {
    // The built graph has the nodes of the record before the caller's.
    std::vector<ParamUpdate> sent = params;
    for (ParamUpdate& update : sent) {
      if (update.address.leaf) *update.address.leaf += hidden_nodes();
    }
    EAGLE_RETURN_IF_ERROR(within_call(built->update(sent), "update"));
    EAGLE_ASSIGN_OR_RETURN(const auto changed, graph::resolve_updates(*recording->graph, params));
    for (const auto& [target, bits] : changed) recording->params[{target.launch, target.argument}] = bits;
    ++recording->params_changed;
  }
  remember(params);
  counting::add(counting::of_process().updates);
  return {};
}

// What a file of the graph says of its Params.
void Graph::State::remember(const std::vector<ParamUpdate>& params) {
  const std::scoped_lock lock(mutex);
  for (const ParamUpdate& update : params)
    updated[{update.address.node, update.address.leaf, update.address.name}] = {++updates, update.value};
}

Status Graph::State::rebind(const std::vector<PlaneUpdate>& planes) {
  const util::Busy::Guard guard(busy);
  if (!guard.entered()) return eagle::busy("rebind");
  if (!built) return {Reason::graph_state, "rebind: this graph is not built; call build() first"};
  EAGLE_ASSIGN_OR_RETURN(const auto looked_at, look());
  Replacements replacements;
  for (const PlaneUpdate& plane : planes) {
    EAGLE_ASSIGN_OR_RETURN(const auto targets,
                           graph::resolve(*looked_at, plane.address, graph::Wanted::plane, "rebind"));
    for (const graph::Target& target : targets) {
      replacements.emplace(target.node, std::pair(target.argument, &plane.array));
    }
  }
  std::vector<StagePtr> fresh;
  Replacing replacing(replacements);
  for (const StagePtr& stage : stages) {
    fresh.push_back(replacing.stage(*stage));
    EAGLE_RETURN_IF_ERROR(check_conditionals(*fresh.back()).within("rebind"));
  }
  v1::GraphDescription description;
  StatusOr<Backing> whole = describe(fresh, description);
  if (!whole.ok()) return whole.status().within("rebind");
  if (!dispatch.empty()) {  // the kernels are those of the build
    EAGLE_RETURN_IF_ERROR(apply_dispatch(dispatch, description).within("rebind"));
  }
  std::shared_ptr<Recording> record;
  if (recording) {
    auto made = Recording::add_to(session, fresh, description, *whole);
    if (!made.ok()) return made.status().within("rebind");
    record = *std::move(made);
    record->params = recording->params;  // the numbers of Params stay
    record->params_changed = recording->params_changed;
  }
  EAGLE_RETURN_IF_ERROR(within_call(built->rebind(description, whole->private_planes), "rebind"));
  counting::add(counting::of_process().rebinds);
  adopt(std::move(fresh), std::move(*whole));
  const std::scoped_lock lock(mutex);
  if (recording) recording->supersede();
  recording.swap(record);
  return {};
}

Status Graph::update(const std::vector<ParamUpdate>& params) { return state_->update(params); }
Status Graph::rebind(const std::vector<PlaneUpdate>& planes) { return state_->rebind(planes); }

}  // namespace eagle
