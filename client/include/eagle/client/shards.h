// A batch that is run in shards, wherever they run, with the bits of one run of all of it.
//
//   for (const Shard& shard : eagle::shards_of(n, 4))              // on one machine each
//     results.push_back(*simulate(session, model, {.max_steps = 1000, .shard = shard}));
//   StatusOr<RunResult> whole = eagle::combine_shards(results);
//   double energy = 0;
//   whole->report.reductions[0].store(reinterpret_cast<std::byte*>(&energy));
//
// docs/manual/stepping.md says which models can be run so. Pure functions, of any thread.
#pragma once

#include <string>
#include <string_view>

#include "eagle/client/run.h"

namespace eagle {

using step::ShardReduction;
using step::shards_of;

// What a run of the whole batch would have told; see step::combine.
inline StatusOr<RunResult> combine_shards(std::span<const RunResult> shards) { return step::combine(shards); }

// A result as bytes, to be sent to where results are combined, and back. BAD_MESSAGE.
std::string to_bytes(const RunResult& result);
StatusOr<RunResult> result_from_bytes(std::string_view bytes);

}  // namespace eagle
