// Strikes: which graphs were computing when workers died, in the journal. The worker reads them, says whose
// they are, and ends those that an admin pardons (server/quarantine.h).
#pragma once

#include <cstdint>

#include "engine/base/status.h"
#include "server/keeper/estate.h"
#include "server/ledger.h"

namespace eagle::server {

// More are not kept: the one whose last death is longest ago goes.
constexpr std::size_t most_strikes = 1024;

// A worker died while this graph computed, at a time of the steady clock. How often it was so by now.
// SYSTEM, BAD_MESSAGE.
StatusOr<std::uint32_t> strike(Estate& estate, const GraphHash& hash, std::int64_t now_ns);

}  // namespace eagle::server
