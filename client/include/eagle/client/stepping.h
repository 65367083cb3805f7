// Stepping models of several parts, with the caller's own code between kernels.
//
//   StatusOr<RunResult> result = eagle::simulate(session, {kick, drift, eagle::opaque([&] { return log(x); },
//   {})},
//                                                {.max_steps = 1000});
//
// One step is every part in order over the whole batch; a finished sample is skipped by the kernels. One
// request, however many steps: the caller's code is called in the calling thread, on both hosts.
#pragma once

#include <span>
#include <variant>
#include <vector>

#include "eagle/client/graph.h"
#include "eagle/client/run.h"
#include "eagle/client/session.h"
#include "engine/base/status.h"

namespace eagle {

// Opaque nodes are of the captured tier: others cannot run inside a loop, and are refused.
using ModelStep = std::variant<BoundPlan, Opaque>;

// Steps the model until every sample has finished or max_steps is reached; state and mask are updated in
// place. All Terminated arguments of a model are bound to one mask. An error or exception of the caller's own
// code comes back as it was; the state is then where the step in hand left it.
StatusOr<RunResult> simulate(const Session& session, std::span<const ModelStep> model,
                             const SimulateOptions& options);
inline StatusOr<RunResult> simulate(const Session& session, const std::vector<ModelStep>& model,
                                    const SimulateOptions& options) {
  return simulate(session, std::span<const ModelStep>(model), options);
}

}  // namespace eagle
