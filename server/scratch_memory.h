// Memory that is made for a session's own use and is no plane: scratch planes of its graphs, copies.
#pragma once

#include <memory>

#include "engine/engine.h"
#include "engine/run/cuda/device.h"
#include "engine/run/cuda/devices.h"

namespace eagle::server {

class Gpus;
class PlaneBudget;
class Session;

// Counts as a plane does, for the daemon and for the session's tenant, for as long as it is. PLANE_BUDGET,
// QUOTA, OUT_OF_MEMORY.
Engine::MakeScratch scratch_memory(const std::shared_ptr<PlaneBudget>& budget, const Session& session);
// The same of a GPU: pays by the session's tenant (tenant_gpu_bytes) and the GPU's budget. PLANE_BUDGET,
// QUOTA. `gpus` is held by what is paid for.
run::cuda::Account account_on(Gpus& gpus, std::shared_ptr<const run::cuda::Devices::Unit> unit,
                              const Session& session);

}  // namespace eagle::server
