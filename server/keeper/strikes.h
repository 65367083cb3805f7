// Strikes: which graphs were computing when workers died, in the journal. The worker reads them, says whose
// they are, and ends those that an admin pardons (server/quarantine.h).
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/status.h"
#include "server/keeper/estate.h"
#include "server/ledger.h"

namespace eagle::server {

// More are not kept: the one whose last death is longest ago goes.
constexpr std::size_t most_strikes = 1024;

// A worker died, or is to be replaced, while this graph computed, at a time of the steady clock. How often it
// was so by now. `tenant` and `graph`: whose it is, where that is known. SYSTEM, BAD_MESSAGE.
StatusOr<std::uint32_t> strike(Estate& estate, const GraphHash& hash, std::int64_t now_ns,
                               const std::string& tenant = {}, const std::string& graph = {});

}  // namespace eagle::server
