#include "engine/step/shard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <tuple>

#include "engine/run/reduction/reduction.h"
#include "engine/step/simulation.h"

namespace eagle::step {
namespace {

constexpr std::int64_t leaf = run::plain_leaf_samples;

Status refusal(const std::string& why) { return {Reason::bad_value, "combine: " + why}; }

std::string text(const Shard& shard) {
  return "(" + std::to_string(shard.base) + ", " + std::to_string(shard.count) + ", " +
         std::to_string(shard.of) + ")";
}

// A leaf whose samples all take no part.
run::Cell neutral_leaf(const run::Reducer& reducer, kernel::ReduceOp op, kernel::Scalar scalar) {
  const std::uint64_t bits = kernel::neutral_bits(op, scalar);
  const auto item = static_cast<std::size_t>(kernel::bytes_of(scalar));
  alignas(8) std::array<std::byte, leaf * 8> values;
  for (std::size_t i = 0; i < static_cast<std::size_t>(leaf); ++i)
    std::memcpy(values.data() + i * item, &bits, item);
  run::Partial one;
  reducer.append(one, values.data(), 0, leaf);
  return one.nodes()[0].value;
}

// What samples give that have all finished before: leaves [first, last), in whole subtrees.
void append_neutral(run::Partial& partial, const run::Reducer& reducer, const run::Cell& value,
                    std::int64_t first, std::int64_t last) {
  while (first < last) {
    const auto begin = static_cast<std::uint64_t>(first);
    const int within = std::bit_width(static_cast<std::uint64_t>(last - first)) - 1;
    const int level = begin == 0 ? within : std::min(std::countr_zero(begin), within);
    reducer.append(partial, run::Partial::Node{first >> level, level, value});
    first += std::int64_t{1} << level;
  }
}

Status check_one_batch(std::span<const RunResult* const> shards) {
  std::int64_t next = 0;
  for (const RunResult* result : shards) {
    const RunReport& report = result->report;
    const RunReport& first = shards.front()->report;
    if (!report.shard) return refusal("a result is not of a shard; give each run its shard=(base, count, n)");
    const Shard& shard = *report.shard;
    if (shard.of != first.shard->of) {
      return refusal("shard " + text(shard) + " is of another batch than " + text(*first.shard));
    }
    if (report.kernels != first.kernels)
      return refusal("shard " + text(shard) + " ran another model than " + text(*first.shard));
    if (shard.base != next) {
      return refusal("samples [" + std::to_string(std::min(next, shard.base)) + ", " +
                     std::to_string(std::max(next, shard.base)) + ") are in " +
                     (shard.base > next ? "no shard" : "two shards") + "; each sample is in one");
    }
    next = shard.base + shard.count;
  }
  if (const std::int64_t of = shards.front()->report.shard->of; next != of) {
    return refusal("samples [" + std::to_string(next) + ", " + std::to_string(of) +
                   ") are in no shard; each sample is in one");
  }
  return {};
}

// Samples that have not finished must stand at one step, or there is no run of the whole that ended so.
Status check_one_step(std::span<const RunResult* const> shards, std::int64_t steps) {
  for (const RunResult* result : shards) {
    const std::vector<StepRange>& ranges = result->report.ranges;
    if (std::all_of(ranges.begin(), ranges.end(), [&](const StepRange& r) { return r.steps == steps; }))
      continue;
    return refusal("shard " + text(*result->report.shard) + " ended " + std::string(name_of(result->status)) +
                   " after " + std::to_string(result->report.steps) + " steps, another one after " +
                   std::to_string(steps) +
                   "; step it on to there with max_steps, and combine the results of those runs");
  }
  return {};
}

// Those of shards that had finished before the last step take no part in it, and their nodes are of an
// earlier one.
StatusOr<ShardReduction> combine_reduction(std::span<const RunResult* const> shards, std::size_t index,
                                           std::int64_t steps) {
  ShardReduction all = shards.front()->report.reductions[index];
  const run::Reducer& reducer = run::reducer_for({all.op, all.scalar});
  const run::Cell neutral = neutral_leaf(reducer, all.op, all.scalar);
  run::Partial whole;
  for (const RunResult* result : shards) {
    const ShardReduction& mine = result->report.reductions[index];
    const Shard& shard = *result->report.shard;
    if (mine.argument != all.argument || mine.op != all.op || mine.scalar != all.scalar)
      return refusal("shard " + text(shard) + " has other reductions than the first one");
    const std::int64_t first = shard.base / leaf;
    const std::int64_t last = (shard.base + shard.count + leaf - 1) / leaf;
    if (result->report.steps < steps || mine.nodes.empty()) {
      append_neutral(whole, reducer, neutral, first, last);
      continue;
    }
    std::int64_t at = first;
    for (const run::Partial::Node& node : mine.nodes) {
      const bool fits = node.level >= 0 && node.level < 55 && last - at >= std::int64_t{1} << node.level &&
                        node.index == at >> node.level && at % (std::int64_t{1} << node.level) == 0;
      if (!fits) {
        return refusal("the reductions of shard " + text(shard) + " are not those of its samples");
      }
      at += std::int64_t{1} << node.level;
      reducer.append(whole, node);
    }
    if (at < last) return refusal("the reductions of shard " + text(shard) + " leave samples out");
  }
  all.nodes.clear();
  if (steps > 0) all.nodes.assign(whole.nodes().begin(), whole.nodes().end());
  return all;
}

void add_groups(RunReport& all, const RunReport& report, bool larger) {
  for (std::size_t g = 0; g < std::min(all.dispatch.size(), report.dispatch.size()); ++g) {
    GroupReport& group = all.dispatch[g];
    const GroupReport& mine = report.dispatch[g];
    for (std::size_t b = 0; b < std::min(group.counts.size(), mine.counts.size()); ++b)
      group.counts[b] += mine.counts[b];
    if (!larger) continue;
    group.policy = mine.policy;
    group.gain = mine.gain;
    group.measured_gain = mine.measured_gain;
  }
}

// Times and passes, and what the shard with the most samples says of its groups.
void add(RunReport& all, const RunReport& report, std::int64_t& most) {
  all.samples += report.samples;
  all.finished += report.finished;
  all.launches += report.launches;
  all.compactions += report.compactions;
  all.counts += report.counts;
  all.threads = std::max(all.threads, report.threads);
  all.build_s = std::max(all.build_s, report.build_s);
  all.wall_s = std::max(all.wall_s, report.wall_s);
  all.fused_steps = std::max(all.fused_steps, report.fused_steps);
  all.records = std::max(all.records, report.records);
  all.compiled |= report.compiled;
  add_groups(all, report, report.samples > most);
  most = std::max(most, report.samples);
}

RunStatus status_of(std::span<const RunResult* const> shards) {
  RunStatus status = RunStatus::finished;
  for (const RunResult* result : shards) status = std::max(status, result->status);
  return status;
}

}  // namespace

std::vector<Shard> shards_of(std::int64_t n, std::int64_t parts) {
  const std::int64_t leaves = n / leaf + (n % leaf > 0 ? 1 : 0);
  parts = std::max<std::int64_t>(std::min(parts, leaves), 1);
  std::vector<Shard> shards;
  std::int64_t first = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t mine = leaves / parts + (part < leaves % parts ? 1 : 0);
    const std::int64_t count = std::min(mine, (n - first) / leaf + 1) * leaf;
    shards.push_back({first, std::min(count, n - first), n});
    first += shards.back().count;
  }
  return shards;
}

void ShardReduction::store(std::byte* out) const {
  const run::Reducer& reducer = run::reducer_for({op, scalar});
  run::Partial whole;
  for (const run::Partial::Node& node : nodes) reducer.append(whole, node);
  reducer.finish(whole, out);
}

StatusOr<RunResult> combine(std::span<const RunResult> given) {
  if (given.empty()) return refusal("expected the results of shards, found none");
  std::vector<const RunResult*> shards;
  for (const RunResult& result : given) shards.push_back(&result);
  // Equal ones in the order in which they were given.
  std::sort(shards.begin(), shards.end(), [](const RunResult* a, const RunResult* b) {
    const Shard not_one{};
    const Shard& first = a->report.shard ? *a->report.shard : not_one;
    const Shard& second = b->report.shard ? *b->report.shard : not_one;
    return std::tuple(first.base, first.count, a) < std::tuple(second.base, second.count, b);
  });
  EAGLE_RETURN_IF_ERROR(check_one_batch(shards));
  RunResult all{status_of(shards), shards.front()->report};
  std::int64_t most = all.report.samples;
  for (const RunResult* result : std::span(shards).subspan(1)) {
    all.report.steps = std::max(all.report.steps, result->report.steps);
    add(all.report, result->report, most);
  }
  EAGLE_RETURN_IF_ERROR(check_one_step(shards, all.report.steps));
  all.report.ranges.clear();
  if (std::any_of(shards.begin(), shards.end(), [](const auto* r) { return !r->report.ranges.empty(); }))
    all.report.ranges = {{all.report.samples, all.report.steps}};
  all.report.shard = Shard{0, all.report.shard->of, all.report.shard->of};
  for (const RunResult* result : shards) {
    if (result->report.reductions.size() != all.report.reductions.size())
      return refusal("shard " + text(*result->report.shard) + " has other reductions than the first one");
  }
  for (std::size_t r = 0; r < all.report.reductions.size(); ++r) {
    EAGLE_ASSIGN_OR_RETURN(all.report.reductions[r], combine_reduction(shards, r, all.report.steps));
  }
  return all;
}

}  // namespace eagle::step
