// Shard: consecutive samples of a batch, run on their own; and the run of the whole batch, made of the runs
// of its shards.
//
// Samples of a shard are numbered in the batch, so they compute what they would in a run of all of it. What
// samples make together in a reduction is a tree over all of them (docs/manual/accumulation.md): a shard that
// begins and ends between leaves gives whole subtrees, and whoever has those of all shards has the tree.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"
#include "engine/run/reduction/partial.h"

namespace eagle::step {

struct RunResult;

// The samples [base, base + count) of a batch of `of`.
struct Shard {
  std::int64_t base = 0;
  std::int64_t count = 0;
  std::int64_t of = 0;

  bool operator==(const Shard&) const = default;
};

// The samples of a batch in at most `parts` shards of about equal size, cut between leaves of reductions;
// one, of no samples, where there are none. n >= 0, parts >= 1.
std::vector<Shard> shards_of(std::int64_t n, std::int64_t parts);

// What a shard gave to a reduction of the model in its last step.
struct ShardReduction {
  std::uint32_t launch = 0;  // of the model
  std::string argument;
  kernel::ReduceOp op = kernel::ReduceOp::sum;
  kernel::Scalar scalar = kernel::Scalar::f64;
  std::vector<run::Partial::Node> nodes;  // none: it took no step

  // Stores what the plane of the whole batch holds, one element of `scalar`. Of a combined result, with
  // nodes.
  void store(std::byte* out) const;
};

// What a run of the whole batch would have come to, from the results of shards that make it up, in any order.
// Times, threads and passes are the most that one shard had, or their sum; the rest is exact, reductions
// included. BAD_VALUE where the shards are not of one batch and model, leave something out, or were stopped
// where their common state is of no one step.
StatusOr<RunResult> combine(std::span<const RunResult> shards);

}  // namespace eagle::step
