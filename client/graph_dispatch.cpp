// How the dispatch groups of a graph's kernels run.
#include <string>
#include <vector>

#include "client/graph_state.h"
#include "eagle/v1/graph.pb.h"
#include "engine/graph/edges.h"
#include "engine/kernel/transform.h"
#include "engine/kernel/verify.h"
#include "engine/kernel/wire.h"

namespace eagle {

// Sets the policies of the description's kernels as the choices want them.
Status apply_dispatch(const std::vector<kernel::PolicyChoice>& choices, v1::GraphDescription& description) {
  std::vector<bool> used(choices.size());
  std::vector<std::string> known;
  for (const kernel::PolicyChoice& choice : choices) {
    if (choice.policy != kernel::DispatchPolicy::segmented) continue;
    return {Reason::bad_value,
            "dispatch: a built graph is one fixed structure, which 'segmented' is not: it sorts samples by "
            "branch as a run goes on; take 'switch' or 'predicated', or step the kernel with simulate"};
  }
  for (v1::Kernel& message : *description.mutable_kernels()) {
    EAGLE_ASSIGN_OR_RETURN(const Kernel kernel, kernel::verify(message));
    std::vector<kernel::DispatchPolicy> policies;
    for (const kernel::Group& group : kernel::groups_of(kernel)) {
      policies.push_back(kernel::chosen_policy(group, kernel.name, choices, used));
      known.push_back(group.name);
    }
    if (!policies.empty()) kernel::to_message(kernel::with_policies(kernel, policies), message);
  }
  return kernel::check_choices("the graph", choices, used, known);
}

StatusOr<std::vector<Graph::DispatchRow>> Graph::State::dispatch_rows() {
  std::vector<Graph::DispatchRow> rows;
  {
    const std::scoped_lock lock(mutex);
    if (!built) return rows;
  }
  EAGLE_ASSIGN_OR_RETURN(const auto seen, look());
  std::vector<bool> used(dispatch.size());
  for (const graph::Leaf& leaf : graph::leaves(*seen)) {
    const auto* launch = graph::as<graph::KernelLaunch>(*leaf.node);
    if (launch == nullptr) continue;
    const Kernel& kernel = *seen->kernels[launch->kernel];
    for (const kernel::Group& group : kernel::groups_of(kernel)) {
      const bool flat =
          kernel::chosen_policy(group, kernel.name, dispatch, used) == kernel::DispatchPolicy::predicated;
      rows.push_back({leaf.node->label, group.name,
                      flat ? kernel::DispatchPolicy::predicated : kernel::DispatchPolicy::switch_});
    }
  }
  return rows;
}

StatusOr<std::vector<Graph::DispatchRow>> Graph::dispatch() const { return state_->dispatch_rows(); }

}  // namespace eagle
