// Running forwards once more: what makes overwritten values again, in planes of its own.
#include <algorithm>
#include <string>
#include <utility>

#include "eagle/v1/graph.pb.h"
#include "engine/diff/kernels.h"
#include "engine/diff/planner.h"

namespace eagle::diff {
namespace {

// A view of as many rows as there are trips, each with bytes that lie as those of `view` do.
View stack_of(const View& view, std::int64_t rows, Emitter& emit) {
  View row = packed(view);
  const std::int64_t bytes = (plane::elements(view) * view.item_bytes + 63) / 64 * 64;
  row.plane = emit.arena();
  row.offset = emit.reserve(bytes * rows);
  if (rows > 1) {
    row.shape.insert(row.shape.begin(), rows);
    row.strides.insert(row.strides.begin(), bytes);
  }
  return row;
}

}  // namespace

View Planner::again_view(const Step& step, const View& view, bool written) {
  return written || !program_.intact(view, step) ? shadow(view) : view;
}

// Blocks are brought to where the launch found them, in planes of the reverse pass.
void Planner::begin_again() {
  for (const std::size_t block : needs_.restored) {
    const View bytes = bytes_of(program_.blocks()[block]);
    if (program_.is_cursor(block)) {
      emit_->clear(*head_, "no calls", shadow(bytes));
      continue;
    }
    const diff::Kept* const kept = record_.find(block);
    View from = bytes;
    from.plane = record_plane_;
    from.offset = kept->offset;
    emit_->copy(*head_, "restore", from, shadow(bytes));
  }
}

void Planner::reserve_kept(std::span<const Step> steps, const Trips& trips) {
  for (const Step& step : steps) {
    for (const View& view : needs_.kept[step.number]) {
      const View stack = stack_of(view, trips.count, *emit_);
      kept_[step.number].push_back({view, stack, trips.count > 1 ? stack_of(view, 1, *emit_) : stack});
    }
  }
}

void Planner::sweep(std::span<const Step> steps, Stages& into, const Trips& trips,
                    const std::vector<bool>* again) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    for (const Kept& kept : kept_[step.number]) {
      emit_->copy(into, labelled("keep for", step), shadow(kept.view), kept.stack,
                  trips.count > 1 ? trips.index : std::nullopt);
    }
    if (again == nullptr || (*again)[i]) run_again(step, into);
  }
}

void Planner::run_again(const Step& step, Stages& into) {
  if (const auto* const launch = step.as<graph::KernelLaunch>()) return run_again(step, *launch, into);
  if (const auto* const host = step.as<graph::HostNode>()) return run_again(step, *host, into);
  if (const auto* const conditional = step.as<graph::Conditional>())
    return run_again(step, *conditional, into);
  const std::string label = labelled("again", step);
  if (const auto* const reduce = step.as<graph::Reduce>()) {
    emit_->reduce(into, label, again_view(step, reduce->x.view, false), shadow(reduce->out.view), reduce->op,
                  reduce->compensated);
    return;
  }
  const auto& copy = *step.as<graph::Copy>();
  std::optional<View> index;
  if (copy.index) index = again_view(step, copy.index->view, false);
  emit_->copy(into, label, again_view(step, copy.source, false), shadow(copy.destination), index);
}

void Planner::link_params(const Step& step, const kernel::Kernel& launched, const std::string& label,
                          const std::vector<std::optional<std::uint32_t>>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i])
      out_.params.push_back({{step.launch, *arguments[i]},
                             label,
                             launched.arguments[i].name,
                             launched.arguments[i].type.scalar});
  }
}

void Planner::run_again(const Step& step, const graph::KernelLaunch& launch, Stages& into) {
  const kernel::Kernel& kernel = *program_.graph().kernels[launch.kernel];
  std::vector<Value> values;
  std::vector<std::optional<std::uint32_t>> params;
  for (std::uint32_t i = 0; i < launch.arguments.size(); ++i) {
    const graph::Bound& bound = launch.arguments[i];
    if (!bound.view) {
      values.emplace_back(bound.bits);
      params.emplace_back(i);
      continue;
    }
    const bool written =
        std::any_of(step.writes.begin(), step.writes.end(),
                    [&](const graph::NamedView& write) { return write.name == kernel.arguments[i].name; });
    values.emplace_back(again_view(step, *bound.view, written));
    params.emplace_back(std::nullopt);
  }
  link_params(step, kernel, emit_->launch(into, labelled("again", step), kernel, values), params);
}

void Planner::run_again(const Step& step, const graph::HostNode& host, Stages& into) {
  if (host.writes.empty()) return;
  ReverseCall call;
  call.kind = ReverseCall::Kind::again;
  call.host = step.host;
  call.label = step.node->label;
  call.cursor = shadow(step.reads.back().view);
  std::vector<Emitter::HostPlane> writes;
  for (const graph::NamedView& written : host.writes) {
    call.writes.push_back(shadow(written.view));
    writes.push_back({written.name, call.writes.back()});
  }
  writes.push_back({"calls", call.cursor});
  emit_->host(into, labelled("again", step), {{"calls", call.cursor}}, writes);
  out_.calls.push_back(std::move(call));
}

Emitter::Cells Planner::guard_again(const Step& step, const graph::Conditional& conditional) {
  Emitter::Cells cells{again_view(step, conditional.guard.count.view, false), std::nullopt,
                       conditional.guard.negated};
  if (conditional.guard.baseline) cells.baseline = again_view(step, conditional.guard.baseline->view, false);
  return cells;
}

void Planner::run_again(const Step& step, const graph::Conditional& conditional, Stages& into) {
  const Emitter::Cells guard = guard_again(step, conditional);
  const std::string label = labelled("again", step);
  std::optional<View> iterations;
  if (conditional.iterations) iterations = shadow(conditional.iterations->view);
  Stages& body = step.is_loop()
                     ? emit_->repeat_while(into, label, guard, conditional.max_iterations, iterations)
                     : emit_->skippable(into, label, guard);
  for (const Step& inner : step.body) run_again(inner, body);
}

// The state from which a conditional's body can run, as it was kept.
void Planner::restore(const Step& conditional, Stages& into) {
  for (const Kept& kept : kept_[conditional.number])
    emit_->copy(into, labelled("restore for", conditional), kept.current, shadow(kept.view));
}

}  // namespace eagle::diff
