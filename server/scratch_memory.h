// Memory that is made for a session's own use and is no plane: scratch planes of its graphs, copies.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace eagle::server {

class PlaneBudget;
class Session;

// Counts as a plane does, for the daemon and for the session's tenant, for as long as it is. PLANE_BUDGET,
// QUOTA, OUT_OF_MEMORY.
Engine::MakeScratch scratch_memory(const std::shared_ptr<PlaneBudget>& budget, const Session& session);

}  // namespace eagle::server
