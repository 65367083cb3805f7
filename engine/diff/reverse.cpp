#include "engine/diff/reverse.h"

#include <algorithm>
#include <utility>

#include "eagle/v1/graph.pb.h"
#include "engine/diff/planner.h"
#include "engine/kernel/names.h"

namespace eagle::diff {

Reverse::Reverse() = default;
Reverse::~Reverse() = default;
Reverse::Reverse(Reverse&&) noexcept = default;
Reverse& Reverse::operator=(Reverse&&) noexcept = default;

std::string labelled(std::string_view what, const Step& step) {
  return std::string(what) + " " + step.node->label;
}

Planner::Planner(const Program& program, const Record& record, const ReverseOptions& options, Reverse& out)
    : program_(program), record_(record), options_(options), out_(out), has_reals_(program.blocks().size()) {
  kept_.resize(program.count());
  program.for_each([&](const Step& step) {
    for (const auto* const views : {&step.reads, &step.writes}) {
      for (const graph::NamedView& named : *views) {
        const std::size_t block = program.block_of(named.view);
        if (block != Program::no_block && is_real(named.view)) has_reals_[block] = true;
      }
    }
  });
}

View Planner::within(const View& view, std::int64_t region) const {
  View out = view;
  out.plane = emit_->arena();
  out.offset = view.offset - program_.blocks()[program_.block_of(view)].first + region;
  return out;
}

// A view without elements is fine anywhere.
View Planner::shadow(const View& view) {
  const std::size_t block = program_.block_of(view);
  if (block == Program::no_block) return view;
  const Block& bytes = program_.blocks()[block];
  const auto [at, fresh] = shadows_.try_emplace(block, 0);
  if (fresh) at->second = emit_->reserve(bytes.bytes(), bytes.first % 64);
  return within(view, at->second);
}

View Planner::bar(const View& view) {
  const std::size_t block = program_.block_of(view);
  if (block == Program::no_block) return view;
  const Block& bytes = program_.blocks()[block];
  const auto [at, fresh] = bars_.try_emplace(block, 0);
  if (fresh) {
    at->second = emit_->reserve(bytes.bytes(), bytes.first % 64);
    emit_->clear(*head_, "clear", within(bytes_of(bytes), at->second));
  }
  return within(view, at->second);
}

bool Planner::has_bar(const View& view) const {
  const std::size_t block = program_.block_of(view);
  return block != Program::no_block && has_reals_[block];
}

Status Planner::plan() {
  EAGLE_ASSIGN_OR_RETURN(seeds_, find_seeds(program_, options_.seeds));
  if (options_.wrt) {
    EAGLE_ASSIGN_OR_RETURN(wanted_, find_inputs(program_, *options_.wrt));
  } else {
    wanted_ = all_inputs(program_);
  }
  std::vector<Place> inputs;
  std::vector<Place> ends;
  std::vector<ParamPlace> params;
  for (const Wanted& wanted : wanted_) {
    if (wanted.plane) inputs.push_back(*wanted.plane);
    params.insert(params.end(), wanted.params.begin(), wanted.params.end());
  }
  for (const Wanted& seed : seeds_) ends.push_back(*seed.plane);
  std::vector<std::uint32_t> launches;
  for (const ParamPlace& param : params) launches.push_back(param.launch);
  activity_ = find_activity(program_, inputs, launches, ends);
  EAGLE_ASSIGN_OR_RETURN(needs_, find_needs(program_, activity_, params, Unknown::refused));

  v1::GraphDescription& description = *out_.description;
  if (record_.bytes > 0) {
    out_.record = static_cast<std::uint32_t>(description.planes_size());
    v1::PlaneDeclaration& plane = *description.add_planes();
    plane.set_bytes(static_cast<std::uint64_t>(record_.bytes));
    plane.set_label("record");
    record_plane_ = *out_.record;
  }
  out_.arena = static_cast<std::uint32_t>(description.planes_size());
  description.add_planes()->set_label("reverse");
  emit_.emplace(description, out_.arena);

  Stages head;
  Stages body;
  head_ = &head;
  for (const Wanted& seed : seeds_) out_.seeds.push_back({seed.name, emit_->reserve_like(seed.plane->view)});
  for (const Wanted& wanted : wanted_) {
    if (wanted.params.empty()) continue;
    bool wide = false;
    program_.for_each([&](const Step& step) {
      const auto* const launch = step.as<graph::KernelLaunch>();
      if (launch == nullptr) return;
      const kernel::Kernel& kernel = *program_.graph().kernels[launch->kernel];
      for (const ParamPlace& param : wanted.params) {
        if (param.launch == step.launch)
          wide |= kernel.arguments[param.argument].type.scalar == kernel::Scalar::f64;
      }
    });
    const View sum = emit_->reserve_cell(wide ? plane::DType::f64 : plane::DType::f32);
    emit_->clear(head, "clear", sum);
    sums_.push_back({wanted.params, sum});
  }
  begin_again();
  reserve_kept(program_.steps(), {});
  sweep(program_.steps(), body, {}, &needs_.again);
  EAGLE_RETURN_IF_ERROR(reverse(program_.steps(), body, {}, true));

  std::size_t sum = 0;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const Wanted& wanted = wanted_[i];
    const auto captured = captured_.find(i);
    View view = captured != captured_.end() ? captured->second : View();
    if (!wanted.params.empty()) {
      view = sums_[sum++].cell;
      view.shape = {};
      view.strides = {};
    } else if (captured == captured_.end()) {
      view = bar(wanted.plane->view);
    }
    out_.gradients.push_back({wanted.name, std::move(view)});
  }
  // A graph has a node, even where no seed meets any input.
  if (head.empty() && body.empty()) emit_->clear(head, "clear", cell("nothing", head));
  description.mutable_stages()->Swap(&head);
  description.mutable_stages()->MergeFrom(body);
  out_.arena_bytes = emit_->reserved();
  description.mutable_planes(static_cast<int>(out_.arena))
      ->set_bytes(static_cast<std::uint64_t>(out_.arena_bytes));
  return {};
}

StatusOr<Reverse> plan_reverse(const Program& program, const v1::GraphDescription& message,
                               const Record& record, const ReverseOptions& options) {
  Reverse out;
  out.description = std::make_unique<v1::GraphDescription>();
  out.description->set_name(message.name().empty() ? "reverse" : "reverse of " + message.name());
  out.description->set_derivatives(true);
  *out.description->mutable_planes() = message.planes();
  EAGLE_RETURN_IF_ERROR(Planner(program, record, options, out).plan());
  return out;
}

}  // namespace eagle::diff
