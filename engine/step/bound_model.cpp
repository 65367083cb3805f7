#include "engine/step/bound_model.h"

#include <algorithm>
#include <utility>

namespace eagle::step {
namespace {

Status bind_selectors(const StepKernel& part, const std::shared_ptr<const codegen::Code>& code,
                      std::span<const run::PlaneMemory> planes, const Shard& numbers, std::size_t first_group,
                      BoundKernel& bound) {
  StatusOr<run::BoundLaunch> launch =
      run::BoundLaunch::bind(part.selectors_launch, *part.selectors, code, planes);
  if (!launch.ok()) return launch.status();
  launch->number_samples(numbers.base, numbers.of);
  bound.selectors = *std::move(launch);
  bound.selectors_columns = part.selectors_columns;
  bound.first_output = part.selectors->arguments.size() - part.selected_groups.size();
  for (const std::size_t group : part.selected_groups) bound.selected_groups.push_back(first_group + group);
  return {};
}

void add_groups(const StepKernel& part, std::size_t index, BoundModel& model) {
  for (std::size_t g = 0; g < part.groups.size(); ++g) {
    const StepGroup& group = part.groups[g];
    std::size_t inside = 0;
    for (const std::size_t weight : group.weights) inside += weight;
    const std::size_t all = kernel::scalar_values(*part.kernel);
    const bool selectable =
        std::find(part.selected_groups.begin(), part.selected_groups.end(), g) != part.selected_groups.end();
    model.groups.push_back({group.name, group.policy, group.branches, group.weights, index,
                            std::max<std::size_t>(all - std::min(inside, all), 1), selectable});
  }
}

void add_made(const StepKernel& part, const run::BoundLaunch& launch, BoundModel& model) {
  const std::vector<kernel::Access> accesses = kernel::accesses(*part.kernel);
  for (std::size_t a = 0; a < accesses.size(); ++a) {
    std::byte* const data = launch.planes()[a];
    if (part.columns[a] != none || !accesses[a].written || data == nullptr) continue;
    const kernel::Type& type = part.kernel->arguments[a].type;
    const plane::Layout& layout = part.launch.arguments[a].layout;
    model.made.push_back({data, layout.component_stride, type.components(),
                          static_cast<std::size_t>(layout.samples * kernel::bytes_of(type.scalar))});
  }
}

}  // namespace

StatusOr<BoundModel> bind(const Model& model, std::span<const std::shared_ptr<const codegen::Code>> code,
                          std::span<const std::shared_ptr<const codegen::Code>> selectors,
                          std::span<const run::PlaneMemory> planes) {
  BoundModel bound;
  bound.samples = model.samples;
  const Shard numbers = model.shard.value_or(Shard{0, model.samples, model.samples});
  bound.is_shard = model.shard.has_value();
  bound.first_number = numbers.base;
  std::size_t reductions = 0;
  bound.mask = model.mask;
  for (std::size_t i = 0; i < model.kernels.size(); ++i) {
    const StepKernel& part = model.kernels[i];
    EAGLE_ASSIGN_OR_RETURN(run::BoundLaunch launch,
                           run::BoundLaunch::bind(part.launch, *part.kernel, code[i], planes));
    launch.number_samples(numbers.base, numbers.of);
    std::optional<run::SharedLaunch> shared = run::SharedLaunch::of(part.launch, part.kernel, launch);
    BoundKernel kernel{std::move(launch),
                       std::move(shared),
                       reductions,
                       part.columns,
                       part.long_loops,
                       std::nullopt,
                       {},
                       0,
                       {}};
    if (kernel.shared) reductions += kernel.shared->reductions().size();
    add_made(part, kernel.launch, bound);
    if (selectors[i])
      EAGLE_RETURN_IF_ERROR(bind_selectors(part, selectors[i], planes, numbers, bound.groups.size(), kernel));
    add_groups(part, i, bound);
    bound.lanes = std::max(bound.lanes, kernel.launch.code().lanes());
    bound.long_loops |= part.long_loops;
    bound.kernels.push_back(std::move(kernel));
  }
  for (const Column& column : model.columns) {
    std::byte* data = planes[column.view.plane].data;
    if (data != nullptr) data += column.view.offset;
    bound.columns.push_back(
        {data, column.layout.component_stride, column.components, column.item_bytes, column.written});
    bound.bytes_per_sample += column.item_bytes * column.components;
  }
  return bound;
}

}  // namespace eagle::step
