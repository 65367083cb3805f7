// HeldBytes: memory beside planes that is held for a client, as records of its graphs, names and runs, and
// chunks on their way to it. It counts for the daemon's budget and for the client's tenant until it goes.
#pragma once

#include <cstdint>

#include "engine/base/status.h"
#include "server/plane_budget.h"
#include "server/tenants.h"

namespace eagle::server {

struct HeldBytes {
  PlaneBudget::Charge charge;
  Tenant::Share share;
  void add(HeldBytes more) {
    charge.add(std::move(more.charge));
    share.add(std::move(more.share));
  }
};

// Records are kept twice: here, and in the journal.
constexpr std::uint64_t copies_of_records = 2;

// `tenant` may be null; `what` for people ("the description of a graph"). PLANE_BUDGET, QUOTA
// (tenant_plane_bytes).
inline StatusOr<HeldBytes> hold_bytes(PlaneBudget& budget, Tenant* tenant, const char* what,
                                      std::uint64_t bytes) {
  HeldBytes costs;
  if (tenant != nullptr) {
    EAGLE_ASSIGN_OR_RETURN(costs.share, tenant->hold(Held::plane_bytes, bytes));
  }
  EAGLE_ASSIGN_OR_RETURN(costs.charge, budget.charge_for(what, bytes));
  return costs;
}

// Of what is there already: it counts whatever the bounds are by now, for the tenant as far as its quota
// goes.
inline HeldBytes adopt_bytes(PlaneBudget& budget, Tenant* tenant, std::uint64_t bytes) {
  HeldBytes costs;
  costs.charge = budget.adopt_other(bytes);
  if (tenant == nullptr) return costs;
  if (auto held = tenant->hold(Held::plane_bytes, bytes); held.ok()) costs.share = *std::move(held);
  return costs;
}

}  // namespace eagle::server
