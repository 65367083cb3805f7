// Going backwards through conditionals: a body that ran is run once more from the state that was kept, and
// then taken back; a loop trip by trip, from the last one.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "eagle/v1/graph.pb.h"
#include "engine/diff/kernels.h"
#include "engine/diff/planner.h"
#include "engine/kernel/names.h"

namespace eagle::diff {
namespace {

// A loop of so many trips keeps every one of them, unless it was told otherwise.
constexpr std::int64_t few_trips = 64;
// Of one plane of the arena.
constexpr std::int64_t most_bytes = std::int64_t{1} << 46;

std::int64_t bytes_of(const std::vector<View>& views) {
  std::int64_t bytes = 0;
  for (const View& view : views) bytes += (plane::elements(view) * view.item_bytes + 63) / 64 * 64;
  return bytes;
}

}  // namespace

View Planner::cell(std::string_view label, Stages& cleared_in) {
  const View made = emit_->reserve_cell();
  emit_->clear(cleared_in, label, made);
  return made;
}

Status Planner::reverse(const Step& step, const graph::Conditional& conditional, Stages& into) {
  if (step.is_loop()) return reverse_loop(step, conditional, into);
  // The guard as it was looked at: what the step kept, or what nobody has changed since.
  Emitter::Cells guard{value(step, conditional.guard.count.view), std::nullopt, conditional.guard.negated};
  if (conditional.guard.baseline) guard.baseline = value(step, conditional.guard.baseline->view);
  Stages& body = emit_->skippable(into, labelled("reverse", step), guard);
  restore(step, body);
  reserve_kept(step.body, {});
  sweep(step.body, body, {}, nullptr);
  return reverse(step.body, body, {}, false);
}

StatusOr<LoopPlan> Planner::plan_loop(const Step& step, const graph::Conditional& loop) const {
  LoopPlan plan{step.node->label, loop.max_iterations, 0};
  if (step.loop < options_.trips.size() && options_.trips[step.loop] > 0)
    plan.trips = std::min(plan.trips, options_.trips[step.loop]);
  std::int64_t trip_bytes = 0;
  for (const Step& inner : step.body) trip_bytes += bytes_of(needs_.kept[inner.number]);
  const std::int64_t state_bytes = bytes_of(needs_.kept[step.number]);
  if (options_.checkpoint > 0) {
    plan.interval = std::min(options_.checkpoint, plan.trips);
  } else if (plan.trips <= few_trips) {
    plan.interval = plan.trips;
  } else {
    // trips / interval states and the values of `interval` trips: least where both take the same.
    const double ratio =
        static_cast<double>(state_bytes) / static_cast<double>(std::max<std::int64_t>(trip_bytes, 1));
    const double best = std::ceil(std::sqrt(static_cast<double>(plan.trips) * std::max(ratio, 1e-3)));
    plan.interval = std::clamp<std::int64_t>(static_cast<std::int64_t>(best), 1, plan.trips);
  }
  __extension__ typedef __int128 Wide;
  const Wide states = (plan.trips + plan.interval - 1) / plan.interval;
  const Wide bytes = states * state_bytes + Wide(plan.interval) * trip_bytes;
  if (bytes > most_bytes) {
    return Status(
        Reason::graph_limit,
        "node " + std::to_string(step.leaf) + " " + kernel::quote_name(step.node->label) +
            ": a loop of up to " + std::to_string(plan.trips) +
            " trips would need more than 2^46 bytes to be taken back; give it a smaller cap, or another "
            "checkpoint than " +
            std::to_string(plan.interval));
  }
  return plan;
}

Status Planner::reverse_loop(const Step& step, const graph::Conditional& loop, Stages& into) {
  EAGLE_ASSIGN_OR_RETURN(const LoopPlan plan, plan_loop(step, loop));
  out_.loops.push_back(plan);
  if (plan.interval < plan.trips) return reverse_in_segments(step, loop, plan, into);

  restore(step, into);
  const View trip = loop.iterations ? shadow(loop.iterations->view) : emit_->reserve_cell();
  const Trips trips{plan.trips, plan.trips > 1 ? std::optional(trip) : std::nullopt};
  reserve_kept(step.body, trips);
  Stages& again =
      emit_->repeat_while(into, labelled("again", step), guard_again(step, loop), plan.trips, trip);
  sweep(step.body, again, trips, nullptr);

  const View left = emit_->reserve_cell();
  View ran = trip;
  ran.shape = {1};
  ran.strides = {trip.item_bytes};
  emit_->copy(into, labelled("trips of", step), ran, left);
  Stages& back = emit_->repeat_while(into, labelled("reverse", step), {left, std::nullopt, false}, plan.trips,
                                     std::nullopt);
  emit_->launch(back, labelled("previous trip of", step), count_down(), {left});
  return reverse(step.body, back, {trips.count, plan.trips > 1 ? std::optional(left) : std::nullopt}, false);
}

// Once forwards with the state kept every `interval` trips; then, from the last of these, a segment forwards
// with all that its trips need, and backwards.
Status Planner::reverse_in_segments(const Step& step, const graph::Conditional& loop, const LoopPlan& plan,
                                    Stages& into) {
  const std::int64_t states = (plan.trips + plan.interval - 1) / plan.interval;
  const auto size = static_cast<std::uint64_t>(plan.interval);
  std::vector<Kept> state;  // rows of stacks; `current` is not used
  for (const Kept& kept : kept_[step.number]) {
    View stack = kept.current;
    const std::int64_t bytes = (plane::elements(kept.view) + 63) / 64 * 64;
    stack.offset = emit_->reserve(bytes * states);
    stack.shape.insert(stack.shape.begin(), states);
    stack.strides.insert(stack.strides.begin(), bytes);
    state.push_back({kept.view, stack, stack});
  }
  const View phase = cell("clear", into);
  const View slot = cell("clear", into);
  const View counter = loop.iterations ? shadow(loop.iterations->view) : emit_->reserve_cell();
  restore(step, into);
  Stages& first =
      emit_->repeat_while(into, labelled("again", step), guard_again(step, loop), plan.trips, counter);
  Stages& keeping = emit_->skippable(first, labelled("keep state of", step), {phase, std::nullopt, true});
  for (const Kept& kept : state)
    emit_->copy(keeping, labelled("keep state of", step), shadow(kept.view), kept.stack, slot);
  // A body whose state nobody needs still has a trip to keep; the guard needs a step.
  if (state.empty()) emit_->clear(keeping, labelled("keep state of", step), phase);
  for (const Step& inner : step.body) run_again(inner, first);
  emit_->launch(first, labelled("next trip of", step), advance_slot(), {size, phase, slot});

  const View trips = emit_->reserve_cell();
  View ran = counter;
  ran.shape = {1};
  ran.strides = {counter.item_bytes};
  emit_->copy(into, labelled("trips of", step), ran, trips);
  const View segment = emit_->reserve_cell();
  const View length = emit_->reserve_cell();
  emit_->launch(into, labelled("segments of", step), count_segments(), {trips, size, segment});
  Stages& outer = emit_->repeat_while(into, labelled("segments of", step), {segment, std::nullopt, false},
                                      states, std::nullopt);
  emit_->launch(outer, labelled("previous segment of", step), previous_segment(),
                {trips, size, segment, length});
  for (const Kept& kept : state)
    emit_->copy(outer, labelled("restore for", step), kept.stack, shadow(kept.view), segment);

  const View trip = emit_->reserve_cell();
  const Trips in_segment{plan.interval, plan.interval > 1 ? std::optional(trip) : std::nullopt};
  reserve_kept(step.body, in_segment);
  const View number = emit_->reserve_cell();  // of the trip in the whole loop, where the body sees it
  View counted = counter;
  counted.shape = {1};
  counted.strides = {counter.item_bytes};
  if (loop.iterations) emit_->copy(outer, labelled("trip of", step), counted, number);
  Stages& again =
      emit_->repeat_while(outer, labelled("again", step), {length, trip, false}, plan.interval, trip);
  sweep(step.body, again, in_segment, nullptr);
  if (loop.iterations) {
    emit_->launch(again, labelled("next trip of", step), count_up(), {number});
    emit_->copy(again, labelled("trip of", step), number, counted);
  }
  const View left = emit_->reserve_cell();
  emit_->copy(outer, labelled("trips of", step), length, left);
  Stages& back = emit_->repeat_while(outer, labelled("reverse", step), {left, std::nullopt, false},
                                     plan.interval, std::nullopt);
  emit_->launch(back, labelled("previous trip of", step), count_down(), {left});
  return reverse(step.body, back, {in_segment.count, plan.interval > 1 ? std::optional(left) : std::nullopt},
                 false);
}

}  // namespace eagle::diff
