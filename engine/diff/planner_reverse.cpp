// Going backwards through nodes that are no conditionals.
#include <algorithm>
#include <string>
#include <utility>

#include "eagle/v1/graph.pb.h"
#include "engine/diff/kernels.h"
#include "engine/diff/planner.h"
#include "engine/kernel/names.h"

namespace eagle::diff {
namespace {

using kernel::Role;

kernel::Scalar scalar_of(const View& view) {
  return view.dtype == plane::DType::f32 ? kernel::Scalar::f32 : kernel::Scalar::f64;
}

// Element by element in one piece of memory, in the same order as `other`.
bool is_row_with(const View& view, const View& other) {
  const auto dense = [](const View& v) {
    const View p = packed(v);
    for (std::size_t i = 0; i < v.shape.size(); ++i) {
      if (v.shape[i] > 1 && v.strides[i] != p.strides[i]) return false;
    }
    return true;
  };
  if (!dense(view) || !dense(other)) return false;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] > 1 && view.strides[i] != other.strides[i]) return false;
  }
  return true;
}

View as_row(const View& view) { return row(view.plane, view.offset, view.dtype, plane::elements(view)); }

kernel::Type one(kernel::Scalar scalar) { return {scalar, 0, {1, 1}}; }

}  // namespace

Status Planner::reverse(std::span<const Step> steps, Stages& into, const Trips& trips, bool outermost) {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (outermost) {
      for (std::size_t i = 0; i < seeds_.size(); ++i) {
        if (seeds_[i].plane->leaf != step->leaf) continue;
        EAGLE_RETURN_IF_ERROR(add(out_.seeds[i].view, bar(seeds_[i].plane->view), "seed", into));
      }
    }
    if (activity_.useful[step->number]) {
      if (trips.count > 1) {
        for (const Kept& kept : kept_[step->number])
          emit_->copy(into, labelled("kept for", *step), kept.stack, kept.current, trips.index);
      }
      EAGLE_RETURN_IF_ERROR(reverse(*step, into));
    }
    if (!outermost) continue;
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const std::optional<Place>& place = wanted_[i].plane;
      if (!place || place->leaf == 0 || place->leaf != step->leaf) continue;
      const View from = bar(place->view);
      captured_[i] = emit_->reserve_like(from);
      emit_->copy(into, labelled("gradient at", *step), from, captured_[i]);
    }
  }
  return {};
}

Status Planner::reverse(const Step& step, Stages& into) {
  if (const auto* const conditional = step.as<graph::Conditional>()) return reverse(step, *conditional, into);
  if (const auto* const launch = step.as<graph::KernelLaunch>()) return reverse(step, *launch, into);
  if (!activity_.varied[step.number]) {
    clear_bars(step, into);
    return {};
  }
  if (const auto* const host = step.as<graph::HostNode>()) return reverse(step, *host, into);
  if (const auto* const reduce = step.as<graph::Reduce>()) return reverse(step, *reduce, into);
  return reverse(step, *step.as<graph::Copy>(), into);
}

// What it wrote depends on nothing that is asked about.
void Planner::clear_bars(const Step& step, Stages& into) {
  for (const graph::NamedView& written : step.writes) {
    if (has_bar(written.view)) emit_->clear(into, labelled("clear after", step), bar(written.view));
  }
}

View Planner::value(const Step& step, const View& view) {
  if (program_.intact(view, step)) return view;
  for (const Kept& kept : kept_[step.number]) {
    if (kept.view == view) return kept.current;
  }
  // Part of a block that was kept whole; or of the right kind, for somebody who does not look at it.
  for (const Kept& kept : kept_[step.number]) {
    if (kept.view.dtype != plane::DType::other || program_.block_of(kept.view) != program_.block_of(view))
      continue;
    View out = view;
    out.plane = kept.current.plane;
    out.offset = view.offset - kept.view.offset + kept.current.offset;
    return out;
  }
  return shadow(view);
}

Status Planner::reverse(const Step& step, const graph::KernelLaunch& launch, Stages& into) {
  if (launch.samples == 0) return {};
  const kernel::Kernel& kernel = *program_.graph().kernels[launch.kernel];
  const LaunchReverse& how = needs_.launches[step.number];
  if (how.derivative == nullptr) {
    clear_outputs(step, launch, into);
    return {};
  }
  struct Later {
    View from;
    View into;
  };
  const std::map<std::uint32_t, View> firsts = winners_of(step, launch, into);
  std::vector<Later> additions;
  std::vector<std::pair<std::uint32_t, View>> sums;
  std::vector<Value> values;
  std::vector<std::optional<std::uint32_t>> params;
  for (const kernel::diff::Plane& plane : how.derivative->planes) {
    const auto argument = static_cast<std::uint32_t>(plane.argument);
    const graph::Bound& bound = launch.arguments[argument];
    const kernel::Argument& declared = kernel.arguments[argument];
    params.emplace_back(std::nullopt);
    if (plane.part == kernel::diff::Part::primal) {
      if (bound.view) {
        values.emplace_back(value(step, *bound.view));
      } else {
        values.emplace_back(bound.bits);
        params.back() = argument;
      }
    } else if (plane.part == kernel::diff::Part::first) {
      values.emplace_back(firsts.at(argument));
    } else if (declared.role == Role::param) {
      const bool wide = declared.type.scalar == kernel::Scalar::f64;
      sums.emplace_back(argument, emit_->reserve_cell(wide ? plane::DType::f64 : plane::DType::f32));
      values.emplace_back(sums.back().second);
    } else {
      const View adjoint = bar(*bound.view);
      const bool own = (declared.role == Role::read || declared.role == Role::table) && !how.direct[argument];
      if (!own) {
        values.emplace_back(adjoint);
        continue;
      }
      const View temporary = emit_->scratch_like(adjoint, "bar " + declared.name);
      if (declared.role == Role::table) emit_->clear(into, labelled("clear for", step), temporary);
      additions.push_back({temporary, adjoint});
      values.emplace_back(temporary);
    }
  }
  const std::string label = emit_->launch(into, labelled("reverse", step), how.derivative->kernel, values);
  link_params(step, how.derivative->kernel, label, params);
  clear_outputs(step, launch, into);
  for (const Later& later : additions)
    EAGLE_RETURN_IF_ERROR(add(later.from, later.into, labelled("add after", step), into));
  for (const auto& [argument, sum] : sums) add_param(step, argument, sum, into);
  return {};
}

// The values from before what the launch stored reach nobody through it, but for samples that were stopped.
void Planner::clear_outputs(const Step& step, const graph::KernelLaunch& launch, Stages& into) {
  const kernel::Kernel& kernel = *program_.graph().kernels[launch.kernel];
  const LaunchReverse& how = needs_.launches[step.number];
  const int mask = kernel.terminated_argument();
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    const kernel::Argument& argument = kernel.arguments[i];
    if (!launch.arguments[i].view || !kernel::is_committed(argument.role) ||
        !has_bar(*launch.arguments[i].view))
      continue;
    if (argument.role == Role::mutable_ && how.wrt[i]) continue;  // the derivative has replaced it
    const View adjoint = bar(*launch.arguments[i].view);
    if (mask >= 0 && argument.role != Role::reduce && kernel::is_real(argument.type.scalar)) {
      const View done = value(step, *launch.arguments[static_cast<std::size_t>(mask)].view);
      emit_->launch(into, labelled("clear after", step), clear_where_run(argument.type), {done, adjoint});
    } else {
      emit_->clear(into, labelled("clear after", step), adjoint);
    }
  }
}

void Planner::add_param(const Step& step, std::uint32_t argument, const View& sum, Stages& into) {
  for (const ParamSum& total : sums_) {
    const ParamPlace place{step.launch, argument};
    if (std::find(total.params.begin(), total.params.end(), place) == total.params.end()) continue;
    View from = sum;
    if (from.dtype != total.cell.dtype) {
      from = emit_->reserve_cell(total.cell.dtype);
      emit_->copy(into, labelled("convert for", step), sum, from);
    }
    emit_->launch(into, labelled("add after", step), add_into(one(scalar_of(from))), {total.cell, from});
  }
}

Status Planner::reverse(const Step& step, const graph::HostNode& host, Stages& into) {
  const std::string& label = step.node->label;
  if (std::find(options_.vjps.begin(), options_.vjps.end(), label) == options_.vjps.end()) {
    return {Reason::bad_binding,
            "node " + std::to_string(step.leaf) + " " + kernel::quote_name(label) +
                " is a callable, and what is asked about depends on it; say what its derivative "
                "is: vjps={'" +
                label +
                "': vjp}, where vjp(primals, cotangents) returns the gradient of each of "
                "its reads by name"};
  }
  ReverseCall call;
  call.kind = ReverseCall::Kind::vjp;
  call.host = step.host;
  call.label = label;
  call.cursor = value(step, step.reads.back().view);
  std::vector<Emitter::HostPlane> reads{{"calls", call.cursor}};
  std::vector<Emitter::HostPlane> writes;
  for (const graph::NamedView& read : host.reads) {
    // What is overwritten later is in the record of the call.
    if (program_.intact(read.view, step)) reads.push_back({read.name, read.view});
  }
  for (const graph::NamedView& written : host.writes) {
    call.cotangents.emplace_back(is_real(written.view) ? std::optional(bar(written.view)) : std::nullopt);
    if (call.cotangents.back()) reads.push_back({"bar_" + written.name, *call.cotangents.back()});
  }
  for (std::size_t i = 0; i < host.reads.size(); ++i) {
    const bool asked = activity_.varied_reads[step.number][i];
    call.gradients.emplace_back(asked ? std::optional(emit_->reserve_like(host.reads[i].view))
                                      : std::nullopt);
    if (asked) writes.push_back({"bar_" + host.reads[i].name, *call.gradients.back()});
  }
  emit_->host(into, labelled("reverse", step), reads, writes);
  for (const graph::NamedView& written : host.writes) {
    if (has_bar(written.view)) emit_->clear(into, labelled("clear after", step), bar(written.view));
  }
  for (std::size_t i = 0; i < host.reads.size(); ++i) {
    if (!call.gradients[i]) continue;
    EAGLE_RETURN_IF_ERROR(
        add(*call.gradients[i], bar(host.reads[i].view), labelled("add after", step), into));
  }
  out_.calls.push_back(std::move(call));
  return {};
}

Status Planner::reverse(const Step& step, const graph::Reduce& reduce, Stages& into) {
  const View bar_out = bar(reduce.out.view);
  const View bar_x = as_row(bar(reduce.x.view));
  const View g = row(bar_out.plane, bar_out.offset, bar_out.dtype, reduce.rows);
  const auto n = static_cast<std::uint64_t>(reduce.samples);
  const std::string label = labelled("reverse", step);
  if (reduce.op == kernel::ReduceOp::sum) {
    emit_->launch(into, label, spread(reduce.scalar), {g, n, bar_x});
  } else {
    const View first =
        first_of(step, value(step, reduce.x.view), reduce.rows, reduce.samples, reduce.op, into);
    emit_->launch(into, label, give_to_winner(reduce.scalar), {g, first, n, bar_x});
  }
  emit_->clear(into, labelled("clear after", step), bar_out);
  return {};
}

View Planner::first_of(const Step& step, const View& x, std::int64_t rows, std::int64_t samples,
                       kernel::ReduceOp op, Stages& into) {
  const std::int64_t bytes = rows * static_cast<std::int64_t>(x.item_bytes);
  const View best = row(emit_->arena(), emit_->reserve(bytes), x.dtype, rows);
  View numbers = row(emit_->arena(), emit_->reserve(rows * samples * 8), plane::DType::i64, rows * samples);
  const View first = row(emit_->arena(), emit_->reserve(rows * 8), plane::DType::i64, rows);
  emit_->reduce(into, labelled("again", step), x, best, op);
  emit_->launch(into, labelled("winners of", step), find_winners(scalar_of(x)),
                {as_row(x), best, static_cast<std::uint64_t>(samples), numbers});
  if (x.shape.size() > 1) {
    numbers.shape = {rows, samples};
    numbers.strides = {samples * 8, 8};
  }
  emit_->reduce(into, labelled("first of", step), numbers, first, kernel::ReduceOp::min);
  return first;
}

std::map<std::uint32_t, View> Planner::winners_of(const Step& step, const graph::KernelLaunch& launch,
                                                  Stages& into) {
  std::map<std::uint32_t, View> firsts;
  const LaunchReverse& how = needs_.launches[step.number];
  if (how.terms == nullptr) return firsts;
  const kernel::Kernel& kernel = *program_.graph().kernels[launch.kernel];
  std::map<std::uint32_t, View> given;
  std::vector<Value> values;
  std::vector<std::optional<std::uint32_t>> params;
  for (const kernel::diff::Plane& plane : how.terms->planes) {
    const auto argument = static_cast<std::uint32_t>(plane.argument);
    const graph::Bound& bound = launch.arguments[argument];
    params.emplace_back(std::nullopt);
    if (plane.part == kernel::diff::Part::term) {
      const plane::DType dtype = bound.view->dtype;
      const std::int64_t bytes = launch.samples * static_cast<std::int64_t>(bound.view->item_bytes);
      given[argument] = row(emit_->arena(), emit_->reserve(bytes), dtype, launch.samples);
      values.emplace_back(given[argument]);
    } else if (bound.view) {
      values.emplace_back(value(step, *bound.view));
    } else {
      values.emplace_back(bound.bits);
      params.back() = argument;
    }
  }
  const std::string label = emit_->launch(into, labelled("terms of", step), how.terms->kernel, values);
  link_params(step, how.terms->kernel, label, params);
  for (const auto& [argument, term] : given) {
    if (how.asked[argument])
      firsts[argument] = first_of(step, term, 1, launch.samples, kernel.arguments[argument].reduce, into);
  }
  return firsts;
}

Status Planner::reverse(const Step& step, const graph::Copy& copy, Stages& into) {
  if (!is_real(copy.destination) || !is_real(copy.source)) {
    clear_bars(step, into);
    return {};
  }
  const View bar_source = bar(copy.source);
  const View bar_destination = bar(copy.destination);
  std::optional<View> index;
  if (copy.index) index = value(step, copy.index->view);
  const std::string label = labelled("reverse", step);
  if (!index) {
    const View like = elements_are_apart(copy.source) ? copy.source : row_major(copy.source);
    const View moved = emit_->scratch_like(like, "bar dst");
    emit_->copy(into, label, bar_destination, moved);
    emit_->clear(into, labelled("clear after", step), bar_destination);
    return add(moved, bar_source, labelled("add after", step), into);
  }
  // One row of a stack: it is taken out, and what is left of it is put back.
  const View& row_of = copy.into_stack() ? copy.source : copy.destination;
  View taken = row_of;
  taken.dtype = copy.source.dtype;
  taken.item_bytes = copy.source.item_bytes;
  taken = row_major(taken);
  const View moved = emit_->scratch_like(taken, "bar dst");
  if (copy.into_stack()) {
    View zero = bar_destination;
    zero.shape.erase(zero.shape.begin());
    zero.strides.erase(zero.strides.begin());
    emit_->copy(into, label, bar_destination, moved, index);
    emit_->clear_row(into, labelled("clear after", step), bar_destination, zero, *index);
    return add(moved, bar_source, labelled("add after", step), into);
  }
  const View sum = emit_->scratch_like(taken, "bar src");
  emit_->copy(into, label, bar_destination, moved);
  emit_->clear(into, labelled("clear after", step), bar_destination);
  emit_->copy(into, label, bar_source, sum, index);
  EAGLE_RETURN_IF_ERROR(add(moved, sum, labelled("add after", step), into));
  emit_->copy(into, label, sum, bar_source, index);
  return {};
}

Status Planner::add(const View& from, const View& into_view, std::string_view label, Stages& into) {
  if (plane::elements(from) == 0) return {};
  if (!elements_are_apart(into_view)) return add_overlapping(from, into_view, label, into);
  const kernel::Kernel sum = add_into(one(scalar_of(from)));
  if (is_row_with(from, into_view)) {
    emit_->launch(into, label, sum, {as_row(into_view), as_row(from)});
    return {};
  }
  const View left = emit_->scratch_like(into_view, "sum");
  emit_->copy(into, label, into_view, left);
  View right = from;
  if (!is_row_with(from, left)) {
    right = emit_->scratch_like(into_view, "addend");
    emit_->copy(into, label, from, right);
  }
  emit_->launch(into, label, sum, {as_row(left), as_row(right)});
  emit_->copy(into, label, left, into_view);
  return {};
}

// Elements that share their bytes get the sum of what is for each of them.
Status Planner::add_overlapping(const View& from, const View& into_view, std::string_view label,
                                Stages& into) {
  const auto item = static_cast<std::int64_t>(into_view.item_bytes);
  const plane::Extent extent = plane::extent(into_view);
  const bool whole = std::all_of(into_view.strides.begin(), into_view.strides.end(),
                                 [&](std::int64_t stride) { return stride % item == 0; });
  if (!whole || extent.first % item != 0) {
    return {Reason::wrong_shape, std::string(label) +
                                     ": an array whose elements overlap in part has no derivative: " +
                                     plane::to_string(into_view) + "; copy it first"};
  }
  const std::int64_t n = plane::elements(from);
  View ordered = from;
  if (!is_contiguous(from)) {
    ordered = emit_->scratch_like(row_major(from), "addend");
    emit_->copy(into, label, from, ordered);
  }
  ArenaConstant at;
  at.offset = emit_->reserve(n * 8);
  std::vector<std::int64_t> position(into_view.shape.size());
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t byte = into_view.offset - extent.first;
    for (std::size_t axis = 0; axis < position.size(); ++axis)
      byte += position[axis] * into_view.strides[axis];
    at.values.push_back(byte / item);
    for (std::size_t axis = position.size(); axis-- > 0;) {
      if (++position[axis] < into_view.shape[axis]) break;
      position[axis] = 0;
    }
  }
  const View all = row(into_view.plane, extent.first, into_view.dtype, (extent.last - extent.first) / item);
  emit_->launch(into, label, scatter(scalar_of(from)),
                {row(emit_->arena(), at.offset, plane::DType::i64, n), as_row(ordered), all});
  out_.constants.push_back(std::move(at));
  return {};
}

}  // namespace eagle::diff
