#include "engine/step/model.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "eagle/v1/run.pb.h"
#include "engine/graph/wire.h"
#include "engine/kernel/long_loops.h"
#include "engine/kernel/names.h"
#include "engine/kernel/wire.h"
#include "engine/plane/overlap.h"
#include "engine/run/reduction/reduction.h"

namespace eagle::step {
namespace {

using kernel::DispatchPolicy;
using kernel::quote_name;
using kernel::Role;

// What makes two views the same elements for two arguments.
using Identity = std::tuple<std::uint32_t, std::int64_t, plane::DType, std::int64_t, int>;
Identity identity_of(const plane::View& view, const plane::Layout& layout, int components) {
  return {view.plane, view.offset, view.dtype, components > 1 ? layout.component_stride : 0, components};
}

class Reader {
public:
  Reader(const v1::RunDescription& message, graph::PrivateKernelPlanes private_planes,
         const graph::Limits& limits)
      : message_(message), private_planes_(private_planes), limits_(limits) {}

  StatusOr<Model> read() {
    EAGLE_RETURN_IF_ERROR(check_numbers());
    EAGLE_RETURN_IF_ERROR(read_kernels());
    EAGLE_RETURN_IF_ERROR(read_planes());
    EAGLE_RETURN_IF_ERROR(read_launches());
    EAGLE_RETURN_IF_ERROR(read_host_steps());
    EAGLE_RETURN_IF_ERROR(find_mask());
    EAGLE_RETURN_IF_ERROR(choose_policies());
    EAGLE_RETURN_IF_ERROR(add_stop_steps());
    add_masks();
    for (StepKernel& part : model_.kernels) finish(part);
    find_mixing();
    EAGLE_RETURN_IF_ERROR(read_shard());
    EAGLE_RETURN_IF_ERROR(read_record());
    EAGLE_RETURN_IF_ERROR(check_stop_steps());
    return std::move(model_);
  }

private:
  // ---- what is there

  Status check_numbers() const {
    EAGLE_RETURN_IF_ERROR(graph::refuse_unknown_fields(message_, "run"));
    if (message_.model_size() == 0) {
      return {Reason::malformed_graph, "model: a step without a kernel is empty; give at least one kernel"};
    }
    for (const auto& [what, number] :
         {std::pair{"model", message_.model_size()}, std::pair{"host_steps", message_.host_steps_size()},
          std::pair{"record", message_.record().planes_size()},
          std::pair{"dispatch", message_.dispatch_size()}}) {
      if (number > most_parts) {
        return {Reason::graph_limit, std::string(what) + ": " + std::to_string(number) +
                                         " are over the limit of " + std::to_string(most_parts) +
                                         " in one step"};
      }
    }
    if (message_.max_steps() < 0) {
      return {Reason::bad_value,
              "max_steps must be at least 0, found " + std::to_string(message_.max_steps())};
    }
    if (message_.steps_per_pass() < 0) {
      return {Reason::bad_value,
              "steps must be at least 1, found " + std::to_string(message_.steps_per_pass())};
    }
    if (message_.planes_size() > static_cast<int>(limits_.planes)) {
      return {Reason::graph_limit, "planes: " + std::to_string(message_.planes_size()) +
                                       " are over the limit of " + std::to_string(limits_.planes) +
                                       " (graph_planes)"};
    }
    return {};
  }

  Status read_kernels() {
    for (int i = 0; i < message_.kernels_size(); ++i) {
      StatusOr<kernel::Kernel> kernel = kernel::verify(message_.kernels(i), limits_.kernel);
      if (!kernel.ok()) return kernel.status().within("kernels[" + std::to_string(i) + "]");
      kernels_.push_back(std::make_shared<const kernel::Kernel>(std::move(*kernel)));
    }
    return {};
  }

  Status read_planes() {
    for (int i = 0; i < message_.planes_size(); ++i) {
      EAGLE_ASSIGN_OR_RETURN(graph::Plane plane,
                             graph::read_plane(message_.planes(i), "planes[" + std::to_string(i) + "]"));
      if (plane.scratch) {
        return {Reason::scratch_plane, "planes[" + std::to_string(i) +
                                           "] is a scratch plane, and a run has no graph to own it; pass an "
                                           "array"};
      }
      model_.planes.push_back(std::move(plane));
    }
    return {};
  }

  Status read_launches() {
    for (int i = 0; i < message_.model_size(); ++i) {
      StepKernel part;
      EAGLE_ASSIGN_OR_RETURN(part.launch,
                             graph::read_launch(message_.model(i), kernels_, model_.planes,
                                                "model[" + std::to_string(i) + "]", private_planes_));
      part.kernel = kernels_[part.launch.kernel];
      part.hash = kernel::content_hash(*part.kernel);
      part.long_loops = kernel::has_long_loops(*part.kernel);
      if (const int mask = part.kernel->terminated_argument(); mask >= 0)
        part.mask = static_cast<std::size_t>(mask);
      if (i == 0) {
        model_.samples = part.launch.samples;
      } else if (part.launch.samples != model_.samples) {
        return {Reason::sample_mismatch, "kernels " + name_of(0) + " and " + quote_name(part.kernel->name) +
                                             " of the model have different numbers of samples, " +
                                             std::to_string(model_.samples) + " and " +
                                             std::to_string(part.launch.samples) +
                                             "; the kernels of one step run over the same N samples"};
      }
      model_.kernels.push_back(std::move(part));
    }
    model_.max_steps = message_.max_steps();
    model_.steps_per_pass = message_.steps_per_pass();
    return {};
  }

  Status read_host_steps() {
    std::size_t before = 0;
    for (int i = 0; i < message_.host_steps_size(); ++i) {
      const v1::HostStep& step = message_.host_steps(i);
      const std::string where = "host_steps[" + std::to_string(i) + "]";
      EAGLE_RETURN_IF_ERROR(graph::refuse_unknown_fields(step, where));
      const v1::HostTier tier = step.node().tier();
      if (tier != v1::HOST_TIER_CAPTURED && tier != v1::HOST_TIER_RECORDED && tier != v1::HOST_TIER_CHILD) {
        return {Reason::bad_value,
                where +
                    ": a stream or host node cannot run inside a stepping loop; take some steps at a time "
                    "(max_steps=k), and call your code between them in a loop of your own"};
      }
      std::vector<graph::NamedView> writes;
      for (const auto* views : {&step.node().reads(), &step.node().writes()}) {
        for (const v1::NamedView& view : *views) {
          EAGLE_ASSIGN_OR_RETURN(graph::NamedView read,
                                 graph::read_named_view(view, model_.planes, where, limits_.name_bytes));
          host_views_.push_back(read);
          if (views == &step.node().writes()) writes.push_back(std::move(read));
        }
      }
      if (step.before() > model_.kernels.size() || step.before() < before) {
        return {Reason::malformed_graph, where + ": comes before kernel " + std::to_string(step.before()) +
                                             " of a step of " + std::to_string(model_.kernels.size()) +
                                             "; host steps are in the order of the step"};
      }
      before = step.before();
      if (step.every() < 1 || (step.every() > 1 && before != model_.kernels.size())) {
        return {Reason::bad_value, where + ": every is " + std::to_string(step.every()) +
                                       "; expected 1, or at the end of the step a number above 0"};
      }
      model_.host_steps.push_back({step.node().call(), before, step.every(), std::move(writes)});
    }
    return {};
  }

  // ---- the finish mask

  [[nodiscard]] std::string name_of(std::size_t part) const {
    return quote_name(model_.kernels[part].kernel->name);
  }

  Status find_mask() {
    for (std::size_t i = 0; i < model_.kernels.size(); ++i) {
      const StepKernel& part = model_.kernels[i];
      if (part.mask == none) continue;
      if (!finisher_) finisher_ = i;
      const auto view = [](const StepKernel& of) -> const plane::View& {
        return *of.launch.arguments[of.mask].view;
      };
      const StepKernel& first = model_.kernels[*finisher_];
      if (view(first) == view(part)) continue;
      return {Reason::bad_binding, "kernels " + name_of(*finisher_) + " and " + name_of(i) +
                                       " finish samples in two masks, " +
                                       quote_name(first.kernel->arguments[first.mask].name) + " and " +
                                       quote_name(part.kernel->arguments[part.mask].name) +
                                       "; a model has one: bind the same array to every Terminated argument"};
    }
    if (finisher_ || !model_.host_steps.empty()) return {};
    return {Reason::bad_value, "kernel " + name_of(0) +
                                   (model_.kernels.size() > 1 ? " and those after it have" : " has") +
                                   " no stop rule; give it a Terminated argument and set it when "
                                   "a sample is done, pass until=, or launch it in a graph"};
  }

  static void append(StepKernel& part, kernel::Kernel extended, const graph::Bound& bound) {
    part.kernel = std::make_shared<const kernel::Kernel>(std::move(extended));
    part.launch.arguments.push_back(bound);
  }

  void add_masks() {
    if (!finisher_) return;
    const StepKernel& first = model_.kernels[*finisher_];
    const graph::Bound mask = first.launch.arguments[first.mask];
    const std::string name = first.kernel->arguments[first.mask].name;
    for (StepKernel& part : model_.kernels) {
      if (part.mask != none) continue;
      part.mask = part.launch.arguments.size();
      append(part, kernel::with_mask(*part.kernel, kernel::free_name(*part.kernel, name)), mask);
    }
  }

  Status add_stop_steps() {
    if (!message_.has_stop_steps()) return {};
    EAGLE_ASSIGN_OR_RETURN(plane::View view,
                           graph::read_view(message_.stop_steps(), model_.planes, "stop_steps"));
    const kernel::Type type{kernel::Scalar::i64};
    EAGLE_ASSIGN_OR_RETURN(const plane::Layout layout, plane::layout_of(view, type, "stop_steps"));
    if (!finisher_) return {Reason::bad_value, "events: no kernel of the model finishes samples"};
    if (layout.samples != model_.samples) {
      return {Reason::sample_mismatch, "stop_steps: expected " + std::to_string(model_.samples) +
                                           " elements, found " + std::to_string(layout.samples)};
    }
    if (private_planes_ == graph::PrivateKernelPlanes::refused) {
      EAGLE_RETURN_IF_ERROR(graph::refuse_private(model_.planes[view.plane], "stop_steps", "the run"));
    }
    for (StepKernel& part : model_.kernels) {
      if (part.mask == none) continue;
      const std::string name = kernel::free_name(*part.kernel, "stop_step");
      append(part, kernel::with_stop_step(*part.kernel, name), {view, layout, 0});
    }
    stop_steps_ = std::move(view);
    return {};
  }

  // ---- dispatch

  Status choose_policies() {
    std::vector<kernel::PolicyChoice> choices;
    for (const v1::DispatchChoice& choice : message_.dispatch()) {
      EAGLE_RETURN_IF_ERROR(graph::refuse_unknown_fields(choice, "dispatch"));
      const bool known = choice.policy() >= v1::DISPATCH_AUTO && choice.policy() <= v1::DISPATCH_PREDICATED;
      choices.push_back(
          {choice.group(), known ? static_cast<DispatchPolicy>(choice.policy()) : DispatchPolicy{}});
    }
    std::map<std::string, int> times;
    for (const StepKernel& part : model_.kernels) {
      for (const kernel::Group& group : kernel::groups_of(*part.kernel)) ++times[group.name];
    }
    std::vector<bool> used(choices.size());
    std::vector<std::string> known;
    for (StepKernel& part : model_.kernels) {
      std::vector<DispatchPolicy> compiled;
      bool changed = false;
      for (const kernel::Group& group : kernel::groups_of(*part.kernel)) {
        const DispatchPolicy policy = kernel::chosen_policy(group, part.kernel->name, choices, used);
        const bool flat = policy == DispatchPolicy::predicated;
        changed |= flat != (group.policy == DispatchPolicy::predicated);
        compiled.push_back(flat ? DispatchPolicy::predicated : group.policy);
        known.push_back(times[group.name] > 1 ? part.kernel->name + "." + group.name : group.name);
        part.groups.push_back({known.back(), policy, group.branches, group.weights});
      }
      if (changed)
        part.kernel = std::make_shared<const kernel::Kernel>(kernel::with_policies(*part.kernel, compiled));
    }
    return kernel::check_choices("the model", choices, used, known);
  }

  // ---- columns

  std::size_t column_of(const graph::Bound& bound, int components, std::int64_t item_bytes, bool written) {
    const auto [it, fresh] =
        known_.try_emplace(identity_of(*bound.view, bound.layout, components), model_.columns.size());
    if (fresh) model_.columns.push_back({*bound.view, bound.layout, components, item_bytes, false});
    model_.columns[it->second].written |= written;
    return it->second;
  }

  std::vector<std::size_t> columns_of(const kernel::Kernel& kernel, const graph::KernelLaunch& launch) {
    std::vector<std::size_t> columns;
    const std::vector<kernel::Access> accesses = kernel::accesses(kernel);
    for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
      const kernel::Argument& argument = kernel.arguments[a];
      const bool counts = kernel::is_per_sample(argument.role) && launch.arguments[a].view.has_value();
      columns.push_back(counts ? column_of(launch.arguments[a], argument.type.components(),
                                           kernel::bytes_of(argument.type.scalar), accesses[a].written)
                               : none);
    }
    return columns;
  }

  void finish(StepKernel& part) {
    part.columns = columns_of(*part.kernel, part.launch);
    if (part.mask != none) model_.mask = part.columns[part.mask];
    if (part.groups.empty()) return;
    kernel::Selectors selectors = kernel::selectors_of(*part.kernel);
    if (selectors.groups.empty()) return;
    part.selectors_launch.samples = part.launch.samples;
    for (const std::size_t argument : selectors.arguments)
      part.selectors_launch.arguments.push_back(part.launch.arguments[argument]);
    part.selectors_launch.arguments.resize(selectors.kernel.arguments.size());
    part.selected_groups = std::move(selectors.groups);
    part.selectors = std::make_shared<const kernel::Kernel>(std::move(selectors.kernel));
    part.selectors_columns = columns_of(*part.selectors, part.selectors_launch);
  }

  // Bytes that a part of the model touches.
  struct Touch {
    const plane::View* view;
    plane::Extent extent;
    bool written;
    bool together;     // by all samples: a reduction or an accumulator
    std::string name;  // for people
  };

  // Columns as one each; and what has no element a sample, once an argument.
  std::vector<Touch> touches() const {
    std::vector<Touch> touches;
    std::vector<bool> named(model_.columns.size());
    for (const StepKernel& part : model_.kernels) {
      const std::vector<kernel::Access> accesses = kernel::accesses(*part.kernel);
      for (std::size_t a = 0; a < part.kernel->arguments.size(); ++a) {
        const kernel::Argument& argument = part.kernel->arguments[a];
        const std::size_t c = part.columns[a];
        if (!part.launch.arguments[a].view || (c != none && named[c])) continue;
        if (c != none) named[c] = true;
        const plane::View& view = c != none ? model_.columns[c].view : *part.launch.arguments[a].view;
        touches.push_back({&view, plane::extent(view),
                           c != none ? model_.columns[c].written : accesses[a].written,
                           argument.role == kernel::Role::reduce || argument.role == kernel::Role::accum,
                           quote_name(argument.name) + " of kernel " + quote_name(part.kernel->name)});
      }
    }
    std::sort(touches.begin(), touches.end(), [](const Touch& a, const Touch& b) {
      return std::tie(a.view->plane, a.extent.first) < std::tie(b.view->plane, b.extent.first);
    });
    return touches;
  }

  // Two parts of the model that meet at other elements than their own sample's. Where looking takes long the
  // answer is yes, which costs time and no bits.
  void find_mixing() {
    for (const StepKernel& part : model_.kernels) model_.mixes |= part.kernel->shares();
    if (model_.mixes && !message_.has_shard()) return;
    const std::vector<Touch> all = touches();
    std::int64_t work = 1'000'000;
    for (std::size_t i = 0; i < all.size() && !meeting_; ++i) {
      for (std::size_t j = i + 1; j < all.size() && !meeting_; ++j) {
        const Touch& a = all[i];
        const Touch& b = all[j];
        if (a.view->plane != b.view->plane || b.extent.first >= a.extent.last) break;
        bool meet = --work < 0;
        if (!meet && (a.written || b.written)) {
          const plane::Overlap overlap = plane::overlap(*a.view, *b.view);
          work -= overlap.steps;
          meet = overlap.overlaps;
        }
        if (meet) meeting_ = {a.name, b.name, a.together ? a.name : b.together ? b.name : ""};
      }
    }
    model_.mixes |= meeting_.has_value();
  }

  // ---- a part of a batch

  Status read_shard() {
    if (!message_.has_shard()) return {};
    EAGLE_RETURN_IF_ERROR(graph::refuse_unknown_fields(message_.shard(), "shard"));
    const Shard shard{message_.shard().base(), message_.shard().count(), message_.shard().of()};
    const std::string all = "shard=(" + std::to_string(shard.base) + ", " + std::to_string(shard.count) +
                            ", " + std::to_string(shard.of) + ")";
    if (shard.count < 0 || shard.base < 0 || shard.of < shard.count || shard.base > shard.of - shard.count) {
      return {Reason::bad_value, all +
                                     ": expected (base, count, n), samples [base, base + count) of a batch "
                                     "of n"};
    }
    if (shard.count != model_.samples) {
      return {Reason::sample_mismatch,
              all + ": the planes have " + std::to_string(model_.samples) +
                  " samples; pass those of the shard alone, x[base:base + count] of each plane"};
    }
    if (meeting_) {
      return {Reason::bad_value,
              all + ": " + meeting_->one + " and " + meeting_->other +
                  " touch the same memory at other elements than their own sample's, so what a sample reads "
                  "may depend on another shard; run the whole batch in one" +
                  (meeting_->together.empty()
                       ? ""
                       : ", or cut the model in two: what makes " + meeting_->together +
                             " in shards first, then the others, whose table is the combined value")};
    }
    for (const StepKernel& part : model_.kernels) EAGLE_RETURN_IF_ERROR(check_made(part, shard, all));
    model_.shard = shard;
    return {};
  }

  // What samples make together must come out of the shards' parts, and nobody may look at a part of it.
  Status check_made(const StepKernel& part, const Shard& shard, const std::string& where) const {
    for (std::size_t a = 0; a < part.kernel->arguments.size(); ++a) {
      const kernel::Argument& argument = part.kernel->arguments[a];
      const bool adds = argument.role == kernel::Role::accum, reduces = argument.role == kernel::Role::reduce;
      if (!adds && !reduces) continue;
      const std::string name = quote_name(argument.name) + " of kernel " + quote_name(part.kernel->name);
      if (adds && kernel::is_real(argument.type.scalar) && model_.max_steps > 1) {
        return {
            Reason::bad_value,
            where + ": accumulator " + name +
                " gets reals in the order of steps, then samples, which shards cannot keep; add integers, "
                "or take one step at a time (max_steps=1) and pass the accumulator on from shard to shard"};
      }
      constexpr std::int64_t leaf = run::plain_leaf_samples;
      if (reduces &&
          (shard.base % leaf != 0 || (shard.base + shard.count != shard.of && shard.count % leaf != 0))) {
        return {Reason::bad_value, where + ": reduction " + name + " adds leaves of " + std::to_string(leaf) +
                                       " samples; cut the batch at multiples of that, as eagle.shards does"};
      }
      for (const graph::NamedView& view : host_views_) {
        if (!plane::overlap(view.view, *part.launch.arguments[a].view).overlaps) continue;
        return {Reason::bad_value,
                where + ": your own code touches " + quote_name(view.name) + ", which is " + name +
                    ": a shard knows its own part of it alone; run the whole batch in one"};
      }
    }
    return {};
  }

  // ---- what is wanted beside the state

  // A view that the run itself writes: of memory of its own.
  Status check_alone(const plane::View& view, const std::string& where, std::size_t own_column) const {
    for (std::size_t c = 0; c < model_.columns.size(); ++c) {
      if (c != own_column && plane::overlap(view, model_.columns[c].view).overlaps) {
        return {Reason::plane_overlap,
                where + " shares bytes with a plane of the model; give it an array of its own"};
      }
    }
    for (const StepKernel& part : model_.kernels) {
      for (std::size_t a = 0; a < part.columns.size(); ++a) {
        const auto& bound = part.launch.arguments[a].view;
        if (part.columns[a] != none || !bound || !plane::overlap(view, *bound).overlaps) continue;
        return {Reason::plane_overlap, where + " shares bytes with argument " +
                                           quote_name(part.kernel->arguments[a].name) + " of kernel " +
                                           quote_name(part.kernel->name) + "; give it an array of its own"};
      }
    }
    return {};
  }

  Status check_stop_steps() {
    if (!stop_steps_) return {};
    const auto column = known_.find(identity_of(*stop_steps_, {}, 1));
    return check_alone(*stop_steps_, "stop_steps", column == known_.end() ? none : column->second);
  }

  Status read_record() {
    if (!message_.has_record()) return {};
    const v1::Record& message = message_.record();
    EAGLE_RETURN_IF_ERROR(graph::refuse_unknown_fields(message, "record"));
    Record record;
    record.every = message.every();
    record.initial = message.initial();
    record.rows = std::numeric_limits<std::int64_t>::max();
    if (record.every < 1)
      return {Reason::bad_value, "record: every must be at least 1, found " + std::to_string(record.every)};
    for (int i = 0; i < message.planes_size(); ++i) {
      EAGLE_RETURN_IF_ERROR(read_recorded(message.planes(i), "record[" + std::to_string(i) + "]", record));
    }
    if (record.planes.empty()) return {Reason::bad_value, "record: no plane is named"};
    for (std::size_t i = 0; i < record.planes.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (plane::overlap(record.planes[i].rows, record.planes[j].rows).overlaps)
          return {Reason::plane_overlap, "record: the rows of two planes share bytes; give each its own"};
      }
    }
    model_.record = std::move(record);
    return {};
  }

  Status read_recorded(const v1::RecordedPlane& message, const std::string& where, Record& record) {
    EAGLE_RETURN_IF_ERROR(graph::refuse_unknown_fields(message, where));
    if (message.launch() >= model_.kernels.size()) {
      return {Reason::malformed_graph, where + ": refers to launch " + std::to_string(message.launch()) +
                                           " of a model of " + std::to_string(model_.kernels.size())};
    }
    const StepKernel& part = model_.kernels[message.launch()];
    const auto& arguments = part.kernel->arguments;
    const auto found =
        std::find_if(arguments.begin(), arguments.end(),
                     [&](const kernel::Argument& argument) { return argument.name == message.argument(); });
    const std::size_t a = static_cast<std::size_t>(found - arguments.begin());
    if (found == arguments.end() || part.columns[a] == none) {
      return {Reason::bad_binding, where + ": kernel " + quote_name(part.kernel->name) + " has no plane " +
                                       quote_name(message.argument()) + " of one element a sample"};
    }
    EAGLE_ASSIGN_OR_RETURN(plane::View rows, graph::read_view(message.rows(), model_.planes, where));
    if (private_planes_ == graph::PrivateKernelPlanes::refused) {
      EAGLE_RETURN_IF_ERROR(graph::refuse_private(model_.planes[rows.plane], where, "the run"));
    }
    const Column& column = model_.columns[part.columns[a]];
    std::vector<std::int64_t> shape{rows.shape.empty() ? 0 : rows.shape[0]};
    if (column.components > 1) shape.push_back(column.components);
    shape.push_back(model_.samples);
    if (rows.shape != shape || rows.dtype != column.view.dtype || !row_major(rows) || shape[0] < 1) {
      return {Reason::wrong_shape,
              where + ": expected contiguous rows of " + std::string(plane::name_of(column.view.dtype)) +
                  " (rows, " + (column.components > 1 ? std::to_string(column.components) + ", " : "") +
                  std::to_string(model_.samples) + "), found " + plane::to_string(rows)};
    }
    EAGLE_RETURN_IF_ERROR(check_alone(rows, where, none));
    record.rows = std::min(record.rows, rows.shape[0]);
    record.planes.push_back({part.columns[a], std::move(rows)});
    return {};
  }

  static bool row_major(const plane::View& view) {
    std::int64_t stride = view.item_bytes;
    const bool empty = plane::elements(view) == 0;  // whose strides say nothing
    for (std::size_t i = view.shape.size(); i-- > 0;) {
      if (!empty && view.shape[i] > 1 && view.strides[i] != stride) return false;
      stride *= view.shape[i];
    }
    return view.item_bytes == plane::bytes_of(view.dtype) && view.offset % view.item_bytes == 0;
  }

  const v1::RunDescription& message_;
  const graph::PrivateKernelPlanes private_planes_;
  const graph::Limits& limits_;
  std::vector<std::shared_ptr<const kernel::Kernel>> kernels_;
  std::optional<std::size_t> finisher_;  // the first kernel that finishes samples
  std::optional<plane::View> stop_steps_;
  std::vector<graph::NamedView> host_views_;  // that host steps read or write
  // Arguments of parts that touch other samples' elements; one of them may be made by all samples together.
  struct Meeting {
    std::string one;
    std::string other;
    std::string together;
  };
  std::optional<Meeting> meeting_;
  std::map<Identity, std::size_t> known_;
  Model model_;
};

}  // namespace

bool Model::has_host_steps_within() const {
  return std::any_of(host_steps.begin(), host_steps.end(),
                     [](const HostStep& step) { return step.every == 1; });
}

graph::Touches Model::touches() const {
  graph::Touches touches;
  for (const StepKernel& part : kernels) {
    const std::vector<kernel::Access> accesses = kernel::accesses(*part.kernel);
    for (std::size_t a = 0; a < accesses.size(); ++a) {
      if (!part.launch.arguments[a].view) continue;
      const graph::NamedView named{part.kernel->arguments[a].name, *part.launch.arguments[a].view};
      if (accesses[a].read) touches.reads.push_back(named);
      if (accesses[a].written) touches.writes.push_back(named);
    }
  }
  if (!record) return touches;
  for (const Record::Plane& plane : record->planes) touches.writes.push_back({"record", plane.rows});
  return touches;
}

StatusOr<Model> read_model(const v1::RunDescription& message, graph::PrivateKernelPlanes private_planes,
                           const graph::Limits& limits) {
  return Reader(message, private_planes, limits).read();
}

}  // namespace eagle::step
