#include "server/scratch_memory.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "engine/run/system_memory.h"
#include "server/gpus.h"
#include "server/plane_budget.h"
#include "server/session.h"
#include "server/tenants.h"

namespace eagle::server {

Engine::MakeScratch scratch_memory(const std::shared_ptr<PlaneBudget>& budget, const Session& session) {
  struct Charged {
    std::shared_ptr<PlaneBudget> budget;  // outlives its charge
    Tenant::Share share;
    PlaneBudget::Charge charge;
    std::shared_ptr<std::byte> memory;
  };
  return [budget, tenant = session.tenant()](std::uint64_t bytes) -> StatusOr<std::shared_ptr<std::byte>> {
    auto charged = std::make_shared<Charged>();
    charged->budget = budget;
    EAGLE_ASSIGN_OR_RETURN(charged->share, tenant->hold(Held::plane_bytes, PlaneBudget::whole_pages(bytes)));
    EAGLE_ASSIGN_OR_RETURN(charged->charge, budget->charge(bytes));
    EAGLE_ASSIGN_OR_RETURN(charged->memory, run::system_memory(bytes));
    return std::shared_ptr<std::byte>(charged, charged->memory.get());
  };
}

run::cuda::Account account_on(Gpus& gpus, std::shared_ptr<const run::cuda::Devices::Unit> unit,
                              const Session& session) {
  struct Paid {
    Tenant::Share share;
    std::shared_ptr<const void> held;
  };
  return [gpus = gpus.shared_from_this(), unit = std::move(unit), tenant = session.tenant()](
             std::uint64_t bytes, std::string_view what) -> StatusOr<std::shared_ptr<const void>> {
    auto paid = std::make_shared<Paid>();
    EAGLE_ASSIGN_OR_RETURN(paid->share, tenant->hold(Held::gpu_bytes, bytes));
    EAGLE_ASSIGN_OR_RETURN(paid->held, gpus->hold(unit, bytes, what));
    return std::shared_ptr<const void>(std::move(paid));
  };
}

}  // namespace eagle::server
