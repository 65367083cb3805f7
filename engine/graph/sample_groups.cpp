#include "engine/graph/sample_groups.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory_resource>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "engine/kernel/fuse.h"
#include "engine/plane/overlap.h"

namespace eagle::graph {
namespace {

using kernel::Access;
using kernel::Argument;
using kernel::Kernel;

// Bytes of the elements that a kernel's plane can have.
constexpr std::array<std::int64_t, 3> item_sizes = {1, 4, 8};

// The samples of one component: `samples` items side by side.
struct Column {
  std::uint32_t plane = 0;
  std::int64_t first = 0;  // byte
  std::int64_t item = 0;   // bytes
};

// Visits the columns of a per-sample argument.
template <typename Visit>
void for_each_column(const Argument& argument, const Bound& bound, const Visit& visit) {
  const std::int64_t item = kernel::bytes_of(argument.type.scalar);
  for (int c = 0; c < argument.type.components(); ++c) {
    visit(Column{bound.view->plane, bound.view->offset + c * bound.layout.component_stride, item});
  }
}

// What the launches of a group touch so far. All columns are equally many samples long, and two that share a
// byte are equal unless both are only read.
class Touched {
public:
  Touched(std::int64_t samples, const std::vector<PlanePlace>& places) : samples_(samples), places_(places) {}

  // Whether the launch is local to a sample, together with what is here.
  [[nodiscard]] bool admits(const Kernel& kernel, const std::vector<Access>& accesses,
                            const KernelLaunch& launch) const {
    if (launch.samples != samples_) return false;
    if (samples_ == 0) return true;  // nothing is touched
    bool fits = true;
    for (std::size_t i = 0; fits && i < launch.arguments.size(); ++i) {
      const Bound& bound = launch.arguments[i];
      if (!bound.view || !(accesses[i].read || accesses[i].written)) continue;
      if (kernel.arguments[i].role == kernel::Role::table) {
        const Range bytes = range_of(*bound.view);
        fits = !meets(written_, bytes.memory, bytes.first, bytes.last);
        continue;
      }
      for_each_column(kernel.arguments[i], bound, [&](const Column& seen) {
        const Column column = in_memory(seen);
        fits = fits && fits_beside(written_, column);
        if (accesses[i].written) fits = fits && fits_beside(read_, column) && !in_table(column);
      });
    }
    return fits;
  }

  void add(const Kernel& kernel, const std::vector<Access>& accesses, const KernelLaunch& launch) {
    if (samples_ == 0) return;
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      const Bound& bound = launch.arguments[i];
      if (!bound.view || !(accesses[i].read || accesses[i].written)) continue;
      if (kernel.arguments[i].role == kernel::Role::table) {
        const Range bytes = range_of(*bound.view);
        add_table(bytes.memory, bytes.first, bytes.last);
        continue;
      }
      for_each_column(kernel.arguments[i], bound, [&](const Column& seen) {
        const Column column = in_memory(seen);
        const std::pair place(column.item, At(column.plane, column.first));
        if (accesses[i].read) read_.insert(place);
        if (accesses[i].written) written_.insert(place);
      });
    }
  }

private:
  struct Range {
    std::uint32_t memory = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  [[nodiscard]] Range range_of(const plane::View& view) const {
    const plane::Extent bytes = plane::extent(view);
    const PlanePlace& place = places_[view.plane];
    return {place.memory, place.offset + bytes.first, place.offset + bytes.last};
  }
  // The column by where its plane lies.
  [[nodiscard]] Column in_memory(const Column& column) const {
    const PlanePlace& place = places_[column.plane];
    return {place.memory, place.offset + column.first, column.item};
  }

  using At = std::pair<std::uint32_t, std::int64_t>;  // memory, first byte
  // By bytes of an item: all are then equally long.
  using Columns = std::pmr::set<std::pair<std::int64_t, At>>;

  // Whether every column that shares a byte with this one is equal to it.
  [[nodiscard]] bool fits_beside(const Columns& columns, const Column& column) const {
    const std::int64_t last = column.first + samples_ * column.item;
    return std::ranges::all_of(item_sizes, [&](std::int64_t item) {
      for (auto at = first_meeting(columns, item, column.plane, column.first);
           is_before(columns, at, item, column.plane, last); ++at) {
        if (item != column.item || at->second.second != column.first) return false;
      }
      return true;
    });
  }

  [[nodiscard]] bool meets(const Columns& columns, std::uint32_t memory, std::int64_t first,
                           std::int64_t last) const {
    return std::ranges::any_of(item_sizes, [&](std::int64_t item) {
      return is_before(columns, first_meeting(columns, item, memory, first), item, memory, last);
    });
  }

  // The first column of such items that does not end before `first`.
  [[nodiscard]] Columns::const_iterator first_meeting(const Columns& columns, std::int64_t item,
                                                      std::uint32_t memory, std::int64_t first) const {
    return columns.lower_bound({item, {memory, first - samples_ * item + 1}});
  }
  // Whether there is one, and it begins before `last`.
  [[nodiscard]] static bool is_before(const Columns& columns, Columns::const_iterator at, std::int64_t item,
                                      std::uint32_t memory, std::int64_t last) {
    return at != columns.end() && at->first == item && at->second.first == memory && at->second.second < last;
  }

  [[nodiscard]] bool in_table(const Column& column) const {
    auto after = tables_.lower_bound({column.plane, column.first + samples_ * column.item});
    return after != tables_.begin() && std::prev(after)->first.first == column.plane &&
           std::prev(after)->second > column.first;
  }

  // Tables that meet are kept as one range.
  void add_table(std::uint32_t plane, std::int64_t first, std::int64_t last) {
    auto at = tables_.upper_bound({plane, last});
    while (at != tables_.begin() && std::prev(at)->first.first == plane && std::prev(at)->second >= first) {
      --at;
      first = std::min(first, at->first.second);
      last = std::max(last, at->second);
      at = tables_.erase(at);
    }
    tables_.emplace(At{plane, first}, last);
  }

  std::int64_t samples_;
  const std::vector<PlanePlace>& places_;
  std::pmr::monotonic_buffer_resource memory_;  // of thousands of columns, which all go at the same time
  Columns read_{&memory_};
  Columns written_{&memory_};
  std::map<At, std::int64_t> tables_;  // -> last byte
};

// One function as it grows: which elements its launches see.
class Function {
public:
  Function(const RunPlan& plan, const FunctionLimits& limits) : plan_(plan), limits_(limits) {}

  // Takes the launch if it exchanges values with those that are here and all together are within bounds.
  bool take(std::uint32_t launch, const std::vector<Access>& accesses) {
    const KernelLaunch& added = *plan_.launches[launch];
    const Kernel& kernel = *plan_.kernels[added.kernel];
    if (made_.launches.count == 0) {
      // Looked at when another one may see elements of it, which most never do.
      made_.launches = {launch, 1};
      first_ = &accesses;
      arguments_ = kernel.arguments.size();
      return true;
    }
    if (made_.launches.count >= limits_.launches) return false;
    if (arguments_ + kernel.arguments.size() > limits_.arguments || !may_share_with(added)) return false;
    if (made_.places.empty()) take_first();
    const std::size_t values = kernel::scalar_values(kernel);
    if (!fusable_ || kernel.real != real_ || !kernel::can_fuse(kernel)) return false;
    if (values_ + values > limits_.values || clashes(kernel, added, accesses)) return false;
    for (std::size_t i = 0; i < added.arguments.size(); ++i) {
      const Bound& bound = added.arguments[i];
      if (!bound.view) continue;
      if (is_mixed(key_of(kernel.arguments[i], bound), kernel.arguments[i], bound, accesses[i].written))
        return false;
    }
    Placed placed = placed_of(kernel, added);
    if (!placed.shares || places_.size() + placed.fresh.size() > limits_.places) return false;
    add(std::move(placed), kernel, added, accesses);
    arguments_ += kernel.arguments.size();
    ++made_.launches.count;
    return true;
  }

  SampleFunction finish() && {
    if (made_.launches.count == 1) return {made_.launches, {}, {}};
    return std::move(made_);
  }

private:
  using At = std::pair<std::uint32_t, std::int64_t>;  // plane, byte
  // What an argument sees: plane, offset, distance of components, type, whether it is a table, and of which
  // length and extents.
  using Key = std::tuple<std::uint32_t, std::int64_t, std::int64_t, kernel::Scalar, std::uint8_t,
                         std::array<std::uint16_t, 2>, bool, std::int64_t, std::vector<std::uint32_t>>;
  static Key key_of(const Argument& argument, const Bound& bound) {
    const bool table = argument.role == kernel::Role::table;
    std::vector<std::uint32_t> extents;
    for (const kernel::Axis& axis : argument.axes) extents.push_back(axis.extent);
    return {bound.view->plane,
            bound.view->offset,
            argument.type.components() > 1 || table ? bound.layout.component_stride : 0,
            argument.type.scalar,
            argument.type.rank,
            argument.type.extents,
            table,
            table ? bound.layout.samples : 0,
            std::move(extents)};
  }

  // By argument of a launch its place; the keys of places that are new.
  struct Placed {
    std::vector<std::uint32_t> places;
    std::vector<Key> fresh;
    bool shares = false;  // some place is not new
  };
  [[nodiscard]] Placed placed_of(const Kernel& kernel, const KernelLaunch& launch) const {
    Placed placed;
    placed.places.resize(launch.arguments.size(), 0);
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      const Bound& bound = launch.arguments[i];
      if (!bound.view) continue;
      Key key = key_of(kernel.arguments[i], bound);
      if (const auto found = places_.find(key); found != places_.end()) {
        placed.shares = true;
        placed.places[i] = found->second;
        continue;
      }
      const auto again = std::find(placed.fresh.begin(), placed.fresh.end(), key);
      placed.places[i] =
          static_cast<std::uint32_t>(places_.size() + std::distance(placed.fresh.begin(), again));
      if (again == placed.fresh.end()) placed.fresh.push_back(std::move(key));
    }
    return placed;
  }

  void take_first() {
    const KernelLaunch& launch = *plan_.launches[made_.launches.first];
    const Kernel& kernel = *plan_.kernels[launch.kernel];
    fusable_ = kernel::can_fuse(kernel) && !clashes(kernel, launch, *first_);
    real_ = kernel.real;
    add(placed_of(kernel, launch), kernel, launch, *first_);
  }

  void add(Placed placed, const Kernel& kernel, const KernelLaunch& launch,
           const std::vector<Access>& accesses) {
    for (Key& key : placed.fresh) {
      made_.planes.push_back(std::get<0>(key));
      begins_.emplace_back(std::get<0>(key), std::get<1>(key));
      places_.emplace(std::move(key), static_cast<std::uint32_t>(places_.size()));
    }
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      if (launch.arguments[i].view)
        note_columns(placed.places[i], kernel.arguments[i], launch.arguments[i], accesses[i]);
    }
    values_ += kernel::scalar_values(kernel);
    made_.places.push_back(std::move(placed.places));
  }

  // Equal elements begin at the same byte. Quick: small arrays share planes, so that most launches see one
  // that others see, too.
  [[nodiscard]] bool may_share_with(const KernelLaunch& launch) const {
    const std::vector<Bound>& first = plan_.launches[made_.launches.first]->arguments;
    return std::ranges::any_of(launch.arguments, [&](const Bound& bound) {
      if (!bound.view) return false;
      const auto begins_there = [&](const Bound& other) {
        return other.view && other.view->plane == bound.view->plane &&
               other.view->offset == bound.view->offset;
      };
      const At begin(bound.view->plane, bound.view->offset);
      return std::ranges::any_of(first, begins_there) || std::ranges::find(begins_, begin) != begins_.end();
    });
  }

  struct Seen {
    std::uint32_t place = 0;
    bool written = false;
    bool several = false;  // more than one place sees the column, which then nobody writes
  };

  // Whether the argument sees a column as a part of something else than another argument does, and one of
  // them writes it. (Columns that share bytes without being equal do not come together in a group.)
  [[nodiscard]] bool is_mixed(const Key& key, const Argument& argument, const Bound& bound,
                              bool written) const {
    if (argument.role == kernel::Role::table) return false;
    const auto known = places_.find(key);
    bool mixed = false;
    for_each_column(argument, bound, [&](const Column& column) {
      const auto found = columns_.find({column.plane, column.first});
      if (found == columns_.end() || !(written || found->second.written)) return;
      if (known == places_.end() || found->second.several || found->second.place != known->second)
        mixed = true;
    });
    return mixed;
  }

  // Whether arguments of one launch see a column as parts of different things, one of them written.
  static bool clashes(const Kernel& kernel, const KernelLaunch& launch, const std::vector<Access>& accesses) {
    for (std::size_t out = 0; out < accesses.size(); ++out) {
      if (!accesses[out].written) continue;
      const Key key = key_of(kernel.arguments[out], launch.arguments[out]);
      for (std::size_t other = 0; other < accesses.size(); ++other) {
        if (other == out || !launch.arguments[other].view) continue;
        if (launch.arguments[other].view->plane != launch.arguments[out].view->plane) continue;
        if (!(accesses[other].read || accesses[other].written)) continue;
        if (key_of(kernel.arguments[other], launch.arguments[other]) == key) continue;
        if (plane::overlap(*launch.arguments[other].view, *launch.arguments[out].view).overlaps) return true;
      }
    }
    return false;
  }

  void note_columns(std::uint32_t place, const Argument& argument, const Bound& bound, const Access& access) {
    if (argument.role == kernel::Role::table || !(access.read || access.written)) return;
    for_each_column(argument, bound, [&](const Column& column) {
      const auto [at, fresh] = columns_.try_emplace({column.plane, column.first}, Seen{place, false, false});
      if (!fresh && at->second.place != place) at->second.several = true;
      at->second.written |= access.written;
    });
  }

  const RunPlan& plan_;
  const FunctionLimits& limits_;
  SampleFunction made_;
  const std::vector<Access>* first_ = nullptr;  // of the first launch
  std::map<Key, std::uint32_t> places_;
  std::vector<At> begins_;  // by place
  std::map<At, Seen> columns_;
  std::size_t arguments_ = 0;
  std::size_t values_ = 0;
  bool fusable_ = false;
  kernel::Scalar real_ = kernel::Scalar::f64;
};

// Groups launches of one plan.
class Grouping {
public:
  Grouping(const RunPlan& plan, Fusion fusion, const std::vector<PlanePlace>& places,
           const FunctionLimits& limits)
      : plan_(plan), fusion_(fusion), places_(places), limits_(limits) {
    accesses_.reserve(plan.kernels.size());
    for (const auto& kernel : plan.kernels) accesses_.push_back(kernel::accesses(*kernel));
  }

  // Appends the groups of these launches.
  void group(const Launches& launches, std::vector<SampleGroup>& groups) const {
    const std::uint32_t last = launches.first + launches.count;
    for (std::uint32_t first = launches.first; first < last;) {
      const std::uint32_t end = end_of_group(first, last);
      SampleGroup& made = groups.emplace_back();
      made.samples = plan_.launches[first]->samples;
      cut_into_functions(first, end, made);
      first = end;
    }
  }

private:
  [[nodiscard]] const std::vector<Access>& accesses_of(std::uint32_t launch) const {
    return accesses_[plan_.launches[launch]->kernel];
  }
  [[nodiscard]] const Kernel& kernel_of(std::uint32_t launch) const {
    return *plan_.kernels[plan_.launches[launch]->kernel];
  }

  [[nodiscard]] std::uint32_t end_of_group(std::uint32_t first, std::uint32_t last) const {
    if (fusion_ == Fusion::off || kernel_of(first).shares()) return first + 1;
    Touched touched(plan_.launches[first]->samples, places_);
    std::uint32_t end = first;
    while (end < last && end - first < most_group_launches) {
      const Kernel& kernel = kernel_of(end);
      if (kernel.shares()) break;
      const KernelLaunch& bound = *plan_.launches[end];
      if (end > first && !touched.admits(kernel, accesses_of(end), bound)) break;
      touched.add(kernel, accesses_of(end), bound);
      ++end;
    }
    return end;
  }

  void cut_into_functions(std::uint32_t first, std::uint32_t end, SampleGroup& group) const {
    std::optional<Function> function;
    for (std::uint32_t launch = first; launch < end; ++launch) {
      const bool joins = fusion_ == Fusion::full && function && function->take(launch, accesses_of(launch));
      if (joins) continue;
      if (function) group.functions.push_back(std::move(*function).finish());
      function.emplace(plan_, limits_);
      function->take(launch, accesses_of(launch));
    }
    if (function) group.functions.push_back(std::move(*function).finish());
  }

  const RunPlan& plan_;
  const Fusion fusion_;
  const std::vector<PlanePlace>& places_;
  const FunctionLimits limits_;
  std::vector<std::vector<Access>> accesses_;  // by kernel
};

// By instruction, and one past the last: whether something jumps there.
std::vector<bool> jump_targets(const std::vector<Instruction>& program) {
  std::vector<bool> targets(program.size() + 1, false);
  for (const Instruction& instruction : program) {
    if (const auto* skip = std::get_if<SkipUnless>(&instruction)) targets[skip->target] = true;
    if (const auto* test = std::get_if<LoopTest>(&instruction)) targets[test->target] = true;
    if (const auto* back = std::get_if<LoopBack>(&instruction)) targets[back->target] = true;
  }
  return targets;
}

}  // namespace

std::vector<PlanePlace> places_of(const Graph& graph, const ScratchLayout& scratch) {
  std::vector<PlanePlace> places(graph.planes.size());
  for (std::uint32_t p = 0; p < places.size(); ++p) places[p].memory = p;
  for (const ScratchUse& use : scratch.uses) {
    // The first of them stands for the memory of all.
    if (use.in_memory)
      places[use.plane] = {scratch.uses.front().plane, static_cast<std::int64_t>(use.offset)};
  }
  return places;
}

std::vector<SampleGroup> sample_groups(const RunPlan& plan, const Launches& launches, Fusion fusion,
                                       const std::vector<PlanePlace>& places, const FunctionLimits& limits) {
  std::vector<SampleGroup> groups;
  Grouping(plan, fusion, places, limits).group(launches, groups);
  return groups;
}

GroupedPlan group_samples(const RunPlan& plan, Fusion fusion, const std::vector<PlanePlace>& places) {
  const Grouping grouping(plan, fusion, places, {});
  GroupedPlan out;
  for (const Launches& branch : plan.branches) {
    std::vector<std::uint32_t>& groups = out.branches.emplace_back();
    const std::size_t first = out.groups.size();
    grouping.group(branch, out.groups);
    for (std::size_t g = first; g < out.groups.size(); ++g) groups.push_back(static_cast<std::uint32_t>(g));
  }
  const std::vector<bool> targets = jump_targets(plan.program);
  std::vector<std::uint32_t> moved(plan.program.size() + 1);  // where each instruction is now
  for (std::size_t i = 0; i < plan.program.size();) {
    moved[i] = static_cast<std::uint32_t>(out.program.size());
    Launches launches;
    const std::size_t begin = i;
    while (i < plan.program.size() && (i == begin || !targets[i])) {
      const auto* run = std::get_if<RunKernel>(&plan.program[i]);
      if (run == nullptr) break;
      if (i == begin) launches.first = run->launch;
      ++launches.count;
      ++i;
    }
    if (launches.count == 0) {
      out.program.push_back(plan.program[i++]);
      continue;
    }
    const std::size_t first = out.groups.size();
    grouping.group(launches, out.groups);
    for (std::size_t g = first; g < out.groups.size(); ++g)
      out.program.emplace_back(RunKernel{static_cast<std::uint32_t>(g)});
  }
  moved[plan.program.size()] = static_cast<std::uint32_t>(out.program.size());
  for (Instruction& instruction : out.program) {
    if (auto* skip = std::get_if<SkipUnless>(&instruction)) skip->target = moved[skip->target];
    if (auto* test = std::get_if<LoopTest>(&instruction)) test->target = moved[test->target];
    if (auto* back = std::get_if<LoopBack>(&instruction)) back->target = moved[back->target];
  }
  return out;
}

}  // namespace eagle::graph
