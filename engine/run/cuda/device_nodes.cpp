#include "engine/run/cuda/device_nodes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/kernel/additions.h"
#include "engine/kernel/names.h"
#include "engine/kernel/work.h"
#include "engine/run/cuda/note_kernels.h"
#include "engine/run/cuda/reduce_kernels.h"
#include "engine/run/cuda/routines.h"

namespace eagle::run::cuda {

using kernel::Kernel;
using kernel::Role;
using kernel::Scalar;

void DeviceNode::place(std::span<const api::DevicePointer> planes) {
  for (const AddressWord& address : addresses)
    words[address.word] = planes[address.plane] + static_cast<api::DevicePointer>(address.offset);
}

// Where the notes of a launch go.
struct DeviceNodes::Notes {
  kernel::Additions additions;
  std::vector<api::DevicePointer> bases;  // by sample: of elements and values, two a site
  api::DevicePointer words = 0;           // one after the other
  api::DevicePointer used = 0;
  std::int64_t room = 0;
};

StatusOr<api::DevicePointer> DeviceNodes::scratch(std::int64_t bytes) {
  if (there_) {
    if (there_->empty() || there_->front().bytes() != static_cast<std::uint64_t>(bytes))
      return Status(Reason::internal, "the nodes of a graph want other memory than they did before");
    const api::DevicePointer at = there_->front().address();
    there_ = there_->subspan(1);
    return at;
  }
  EAGLE_ASSIGN_OR_RETURN(
      DeviceMemory memory,
      DeviceMemory::create(modules_.device(), static_cast<std::uint64_t>(bytes), account_, "notes and sums"));
  scratch_.push_back(std::move(memory));
  return scratch_.back().address();
}

// A kernel of ours: nothing that it counts is an author's.
Status DeviceNodes::own(Kernel kernel, std::int64_t samples, std::vector<DeviceArgument> arguments,
                        std::vector<DeviceNode>& chain) {
  codegen::DeviceCall call;
  call.end = call.total_samples = samples;
  call.first_step = beside_ + offsetof(Beside, first_step);
  call.counts = beside_ + offsetof(Beside, unseen);
  call.cancel = beside_ + offsetof(Beside, cancel);
  DeviceNode node;
  EAGLE_ASSIGN_OR_RETURN(node.module, modules_.of(kernel));
  node.grid = grid_for(samples);
  node.words = device_parameter(kernel, call, arguments, {});
  chain.push_back(std::move(node));
  return {};
}

Status DeviceNodes::fill(api::DevicePointer at, Scalar scalar, std::uint64_t bits, std::int64_t count,
                         std::vector<DeviceNode>& chain) {
  return own(fill_kernel(scalar, bits), count, {{at, 0, 1, 0}}, chain);
}

// ---- reductions

// `x` begins at an address, or in scratch; the result's address is word `device_base_word(3)` of the last
// node.
Status DeviceNodes::levels(kernel::ReduceOp op, Scalar scalar, bool compensated, std::int64_t rows,
                           std::int64_t samples, DeviceArgument x, std::vector<DeviceNode>& chain) {
  const std::int64_t item = kernel::bytes_of(scalar);
  const std::vector<ReduceLevel> all = reduce_levels(op, scalar, compensated, samples);
  for (const ReduceLevel& level : all) {
    const std::int64_t count = rows * level.count;
    DeviceArgument y;
    if (&level != &all.back()) {
      EAGLE_ASSIGN_OR_RETURN(y.address, scratch(count * item * level.components));
      y.component_stride = count * item;
    }
    x.length = rows * level.n;
    const DeviceArgument n{0, 0, 1, static_cast<std::uint64_t>(level.n)};
    const DeviceArgument each{0, 0, 1, static_cast<std::uint64_t>(level.count)};
    EAGLE_RETURN_IF_ERROR(own(*level.kernel, count, {n, each, x, y}, chain));
    x = y;
  }
  return {};
}

StatusOr<std::vector<DeviceNode>> DeviceNodes::reduce(const graph::Reduce& reduce) {
  std::vector<DeviceNode> chain;
  const auto in_plane = [](DeviceNode& node, std::size_t argument, const plane::View& view) {
    node.addresses.push_back({codegen::device_base_word(argument), view.plane, view.offset});
  };
  constexpr std::size_t x = 2, y = 3;  // arguments of a level
  if (reduce.scalar != Scalar::i32) {
    EAGLE_RETURN_IF_ERROR(
        levels(reduce.op, reduce.scalar, reduce.compensated, reduce.rows, reduce.samples, {}, chain));
    in_plane(chain.front(), x, reduce.x.view);
    in_plane(chain.back(), y, reduce.out.view);
    return chain;
  }
  // Kernels have no planes of 32-bit integers. As 64 bits they give the same: sums are cut to size at the
  // end.
  const std::int64_t elements = reduce.rows * reduce.samples;
  const auto wide = [](std::int64_t count) { return plane::View{0, 0, plane::DType::i64, 8, {count}, {8}}; };
  const auto narrow = [](const plane::View& view, std::int64_t count) {
    return plane::View{view.plane, view.offset, plane::DType::i32, 4, {count}, {4}};
  };
  EAGLE_ASSIGN_OR_RETURN(const api::DevicePointer widened, scratch(8 * elements));
  EAGLE_ASSIGN_OR_RETURN(const api::DevicePointer reduced, scratch(8 * reduce.rows));
  EAGLE_RETURN_IF_ERROR(add_copy({narrow(reduce.x.view, elements), wide(elements)}, chain));
  chain.back().addresses.pop_back();
  chain.back().words[offsetof(CopyWords, destination) / 8] = widened;
  EAGLE_RETURN_IF_ERROR(
      levels(reduce.op, Scalar::i64, false, reduce.rows, reduce.samples, {widened, 0, 1, 0}, chain));
  chain.back().words[codegen::device_base_word(y)] = reduced;
  EAGLE_RETURN_IF_ERROR(add_copy({wide(reduce.rows), narrow(reduce.out.view, reduce.rows)}, chain));
  std::erase_if(chain.back().addresses,
                [](const AddressWord& address) { return address.word == offsetof(CopyWords, source) / 8; });
  chain.back().words[offsetof(CopyWords, source) / 8] = reduced;
  return chain;
}

// ---- copies

Status DeviceNodes::add_copy(const graph::Copy& copy, std::vector<DeviceNode>& chain) {
  CopyRoutine routine_of = copy_routine(copy, arch());
  EAGLE_ASSIGN_OR_RETURN(DeviceNode node,
                         routine(routine_of.ptx, std::move(routine_of.words), routine_of.elements));
  node.addresses.push_back({offsetof(CopyWords, source) / 8, copy.source.plane, copy.source.offset});
  if (copy.index) {
    node.addresses.push_back(
        {offsetof(CopyWords, index) / 8, copy.index->view.plane, copy.index->view.offset});
  }
  node.addresses.push_back(
      {offsetof(CopyWords, destination) / 8, copy.destination.plane, copy.destination.offset});
  chain.push_back(std::move(node));
  return {};
}

StatusOr<std::vector<DeviceNode>> DeviceNodes::copy(const graph::Copy& copy) {
  std::vector<DeviceNode> chain;
  EAGLE_RETURN_IF_ERROR(add_copy(copy, chain));
  return chain;
}

StatusOr<DeviceNode> DeviceNodes::routine(const std::string& ptx, std::vector<std::uint64_t> words,
                                          std::int64_t elements) {
  DeviceNode node;
  EAGLE_ASSIGN_OR_RETURN(node.module, modules_.routine(ptx));
  node.grid = elements == 1 ? Grid() : grid_for(elements);
  node.words = std::move(words);
  return node;
}

// ---- launches

Status DeviceNodes::make_room(const Kernel& kernel, const graph::KernelLaunch& launch, Notes& notes) {
  notes.additions = kernel::additions_of(kernel);
  if (notes.additions.sites.empty()) return {};
  if (notes.additions.by_sample) {
    for (const kernel::Addition& site : notes.additions.sites) {
      const kernel::Type& type = kernel.arguments[site.argument].type;
      const std::int64_t bytes = kernel::bytes_of(type.scalar);
      EAGLE_ASSIGN_OR_RETURN(const api::DevicePointer elements, scratch(8 * launch.samples));
      EAGLE_ASSIGN_OR_RETURN(const api::DevicePointer values,
                             scratch(bytes * type.components() * launch.samples));
      notes.bases.push_back(elements);
      notes.bases.push_back(values);
    }
    notes.room = launch.samples;
    return {};
  }
  const std::int64_t most = most_note_bytes / 8 / launch.samples;
  const std::optional<std::int64_t> words = most_note_words(kernel, most);
  if (!words) {
    return {
        Reason::bad_value,
        "kernel " + kernel::quote_name(kernel.name) +
            " adds to an accumulator in loops that may go round so often that the additions of " +
            std::to_string(launch.samples) + " samples could take more than " +
            std::to_string(most_note_bytes) +
            " bytes on a GPU; give the loops a smaller bound (max_trips), launch fewer samples at a time, or "
            "run the graph on the CPU"};
  }
  notes.room = *words;
  EAGLE_ASSIGN_OR_RETURN(notes.words, scratch(8 * notes.room * launch.samples));
  EAGLE_ASSIGN_OR_RETURN(notes.used, scratch(8 * launch.samples));
  return {};
}

// What samples leave as it is that do not run, or do not come to an op.
Status DeviceNodes::clear(const Kernel& kernel, const graph::KernelLaunch& launch, const Notes& notes,
                          const std::vector<Values>& values, std::vector<DeviceNode>& chain) {
  const bool some_may_not_run = kernel.terminated_argument() >= 0 || kernel::has_loops(kernel);
  for (const Values& one : values) {
    const kernel::Argument& argument = kernel.arguments[one.argument];
    if (!some_may_not_run) break;
    EAGLE_RETURN_IF_ERROR(fill(one.at, argument.type.scalar,
                               kernel::neutral_bits(argument.reduce, argument.type.scalar), launch.samples,
                               chain));
  }
  if (notes.used != 0) EAGLE_RETURN_IF_ERROR(fill(notes.used, Scalar::i64, 0, launch.samples, chain));
  for (std::size_t site = 0; 2 * site < notes.bases.size(); ++site) {
    if (!some_may_not_run && !notes.additions.sites[site].conditional) continue;
    EAGLE_RETURN_IF_ERROR(fill(notes.bases[2 * site], Scalar::i64, ~std::uint64_t{0}, launch.samples, chain));
  }
  return {};
}

Status DeviceNodes::add_notes(const Kernel& kernel, const graph::KernelLaunch& launch, const Notes& notes,
                              std::vector<DeviceNode>& chain) {
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
    if (kernel.arguments[a].role != Role::accum) continue;
    const graph::Bound& bound = launch.arguments[a];
    const kernel::Type& type = kernel.arguments[a].type;
    const std::int64_t bytes = kernel::bytes_of(type.scalar);
    const auto by_value = [](std::int64_t number) {
      return DeviceArgument{0, 0, 1, static_cast<std::uint64_t>(number)};
    };
    std::vector<DeviceArgument> arguments = {by_value(launch.samples)};
    bool added_to = false;
    for (std::size_t site = 0; site < notes.additions.sites.size(); ++site) {
      if (notes.additions.sites[site].argument != a) continue;
      added_to = true;
      if (notes.bases.empty()) continue;
      arguments.push_back({notes.bases[2 * site], 0, launch.samples, 0});
      arguments.push_back({notes.bases[2 * site + 1], bytes * launch.samples, launch.samples, 0});
    }
    if (!added_to) continue;
    const bool by_sample = notes.additions.by_sample;
    if (!by_sample) {
      const std::int64_t words = notes.room * launch.samples;
      arguments.push_back(by_value(notes.room));
      arguments.push_back({notes.words, 0, words, 0});
      arguments.push_back({notes.words, 0, words * 8 / bytes, 0});
      arguments.push_back({notes.used, 0, launch.samples, 0});
    }
    const std::size_t cell = arguments.size();
    arguments.push_back({0, bound.layout.component_stride, 1, 0});
    EAGLE_RETURN_IF_ERROR(own(by_sample ? add_columns_kernel(kernel, notes.additions, a)
                                        : add_words_kernel(kernel, notes.additions, a),
                              bound.layout.samples, std::move(arguments), chain));
    chain.back().addresses.push_back(
        {codegen::device_base_word(cell), bound.view->plane, bound.view->offset});
  }
  return {};
}

StatusOr<std::vector<DeviceNode>> DeviceNodes::launch(const std::shared_ptr<const Kernel>& shared,
                                                      const graph::KernelLaunch& launch,
                                                      std::int64_t max_steps) {
  const Kernel& kernel = *shared;
  const bool shares = kernel.shares() && launch.samples > 0;
  std::vector<DeviceNode> chain;
  Notes notes;
  std::vector<Values>& values = values_;
  values.clear();
  if (shares) {
    EAGLE_RETURN_IF_ERROR(make_room(kernel, launch, notes));
    for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
      if (kernel.arguments[a].role != Role::reduce) continue;
      const std::int64_t bytes = kernel::bytes_of(kernel.arguments[a].type.scalar) * launch.samples;
      EAGLE_ASSIGN_OR_RETURN(const api::DevicePointer at, scratch(bytes));
      values.push_back({a, at});
    }
    EAGLE_RETURN_IF_ERROR(clear(kernel, launch, notes, values, chain));
  }

  DeviceNode node;
  node.kernel = shared;
  std::vector<DeviceArgument> arguments;
  for (std::size_t a = 0; a < launch.arguments.size(); ++a) {
    const graph::Bound& bound = launch.arguments[a];
    arguments.push_back({0, bound.layout.component_stride, bound.layout.samples, bound.bits});
    const auto made =
        std::find_if(values.begin(), values.end(), [&](const Values& one) { return one.argument == a; });
    // Elements are aligned: plane::layout has seen to it, and planes begin at multiples of 256.
    if (made != values.end()) {
      arguments.back().address = made->at;
    } else if (bound.view) {
      node.addresses.push_back({codegen::device_base_word(a), bound.view->plane, bound.view->offset});
    }
  }
  codegen::DeviceCall call;
  call.end = call.total_samples = launch.samples;
  if (numbers_) {
    call.first_sample = numbers_->first;
    call.total_samples = numbers_->total;
  }
  call.max_steps = max_steps;
  call.first_step = first_step_.value_or(beside_ + offsetof(Beside, first_step));
  call.counts = beside_ + offsetof(Beside, counts);
  call.cancel = beside_ + offsetof(Beside, cancel);
  call.notes = notes.words;
  call.notes_used = notes.used;
  call.notes_capacity = notes.room;
  EAGLE_ASSIGN_OR_RETURN(node.module, modules_.of(kernel, &loaded_));
  node.grid = grid_for(launch.samples);
  node.words = device_parameter(kernel, call, arguments, notes.bases);
  chain.push_back(std::move(node));
  if (!shares) return chain;

  for (const Values& one : values) {
    const kernel::Argument& argument = kernel.arguments[one.argument];
    EAGLE_RETURN_IF_ERROR(
        levels(argument.reduce, argument.type.scalar, false, 1, launch.samples, {one.at, 0, 1, 0}, chain));
    const plane::View& out = *launch.arguments[one.argument].view;
    chain.back().addresses.push_back({codegen::device_base_word(3), out.plane, out.offset});
  }
  EAGLE_RETURN_IF_ERROR(add_notes(kernel, launch, notes, chain));
  return chain;
}

}  // namespace eagle::run::cuda
