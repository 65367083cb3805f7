#include "engine/graph/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "engine/graph/edges.h"
#include "engine/kernel/names.h"

namespace eagle::graph {
namespace {

using kernel::quote_name;

constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 62;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
}

struct Life {
  std::uint32_t plane = 0;
  std::uint32_t first = never;  // stages
  std::uint32_t last = 0;
};

// Bytes of a plane, whatever the order of the elements there: [first, last) from `base` on and again a row
// further, for all rows of all axes. A view whose elements lie side by side has no axes left.
struct Axis {
  std::int64_t stride = 0;
  std::int64_t rows = 0;
  friend auto operator<=>(const Axis&, const Axis&) = default;
};
struct Grid {
  std::uint32_t plane = 0;
  std::int64_t base = 0;  // a multiple of the innermost stride; 0 without axes
  std::vector<Axis> axes;
  friend auto operator<=>(const Grid&, const Grid&) = default;
};
struct Bytes {
  Grid grid;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

// Of `run` bytes at `first`, repeated along `axes`, innermost first. What was checked to lie inside a plane
// of at most 2^63 bytes cannot wrap around here.
Bytes bytes_at(std::uint32_t plane, std::int64_t first, std::int64_t run, std::vector<Axis> axes) {
  auto apart = axes.begin();
  for (; apart != axes.end() && apart->stride <= run; ++apart) run += (apart->rows - 1) * apart->stride;
  axes.erase(axes.begin(), apart);
  const std::int64_t base = axes.empty() ? 0 : first - first % axes.front().stride;
  return {{plane, base, std::move(axes)}, first - base, first - base + run};
}

// Of a view with elements. Views of the same bytes, transposed, reversed or reshaped, give the same.
Bytes bytes_of(const plane::View& view) {
  std::vector<Axis> all;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] > 1 && view.strides[i] != 0) all.push_back({std::abs(view.strides[i]), view.shape[i]});
  }
  std::sort(all.begin(), all.end());
  std::vector<Axis> axes;
  for (const Axis& axis : all) {
    // Two axes whose rows follow each other evenly are one.
    const bool even =
        !axes.empty() && axis.stride - axes.back().stride == axes.back().stride * (axes.back().rows - 1);
    if (even) {
      axes.back().rows *= axis.rows;
    } else {
      axes.push_back(axis);
    }
  }
  return bytes_at(view.plane, plane::extent(view).first, view.item_bytes, std::move(axes));
}

// What was written so far. The body of a conditional has a layer of its own over what was written outside,
// which must neither change nor go away meanwhile.
//
// A range of a layer is joined with what it touches in the layers below, so a range that is covered by all
// of them together lies in one range of one of them: no layer is copied, and looking up stays logarithmic.
class Written {
public:
  explicit Written(const Written* outside = nullptr) : outside_(outside) {}

  void add(const plane::View& view) {
    planes_.insert(view.plane);
    if (plane::elements(view) > 0) add(bytes_of(view));
  }
  // All of the view: its bounds, or its rows where others of the same rows were written.
  [[nodiscard]] bool covers(const plane::View& view) const {
    if (plane::elements(view) == 0) return true;
    const plane::Extent bounds = plane::extent(view);
    return covers(Bytes{{view.plane, 0, {}}, bounds.first, bounds.last}) || covers(bytes_of(view));
  }
  // Whether a view of the plane was added to this layer.
  [[nodiscard]] bool touches(std::uint32_t plane) const { return planes_.contains(plane); }

private:
  using Ranges = std::map<std::int64_t, std::int64_t>;  // first -> last, apart from each other

  void add(Bytes bytes) {
    if (covers(bytes)) return;
    for (const Written* layer = this; layer != nullptr; layer = layer->outside_) layer->join(bytes);
    Ranges& ranges = ranges_[bytes.grid];
    ranges.erase(ranges.lower_bound(bytes.first), ranges.upper_bound(bytes.last));
    ranges.emplace(bytes.first, bytes.last);
    if (bytes.grid.axes.empty()) return;
    // Rows without gaps are one run: the columns of a matrix, written one by one, are the matrix.
    const std::int64_t stride = bytes.grid.axes.front().stride;
    if (bytes.first > 0 || bytes.last < stride) return;
    add(bytes_at(bytes.grid.plane, bytes.grid.base, stride, std::move(bytes.grid.axes)));
  }

  [[nodiscard]] bool covers(const Bytes& bytes) const {
    const Ranges* ranges = find(bytes.grid);
    if (ranges != nullptr) {
      const auto after = ranges->upper_bound(bytes.first);
      if (after != ranges->begin() && std::prev(after)->second >= bytes.last) return true;
    }
    return outside_ != nullptr && outside_->covers(bytes);
  }

  // Widens the range by those of this layer that it meets or borders on.
  void join(Bytes& bytes) const {
    const Ranges* ranges = find(bytes.grid);
    if (ranges == nullptr) return;
    if (const auto after = ranges->upper_bound(bytes.last); after != ranges->begin()) {
      bytes.last = std::max(bytes.last, std::prev(after)->second);
    }
    if (const auto after = ranges->upper_bound(bytes.first); after != ranges->begin()) {
      if (std::prev(after)->second >= bytes.first) bytes.first = std::prev(after)->first;
    }
  }

  [[nodiscard]] const Ranges* find(const Grid& grid) const {
    const auto found = ranges_.find(grid);
    return found == ranges_.end() ? nullptr : &found->second;
  }

  const Written* outside_;
  std::map<Grid, Ranges> ranges_;
  std::set<std::uint32_t> planes_;
};

// The walk through the nodes in order that refuses what is read before it was surely written.
class ReadCheck {
public:
  explicit ReadCheck(const Graph& graph) : graph_(graph) {
    for (const auto& kernel : graph.kernels) accesses_.push_back(kernel::accesses(*kernel));
  }

  // `prefix`: where the stages stand, "" or "node 2 'loop': body ".
  Status check(const std::vector<Stage>& stages, Written& written, const std::string& prefix) {
    std::uint32_t number = 0;
    for (const Stage& stage : stages) {
      Status status;
      for_each_leaf(stage.branches, [&](const Node& node) {
        const std::string where = prefix + "node " + std::to_string(number++) + " " + quote_name(node.label);
        if (!status.ok()) return;
        status = visit_kind(node, [&](const auto& kind) { return check_kind(kind, written, where); });
      });
      EAGLE_RETURN_IF_ERROR(status);
    }
    return {};
  }

private:
  Status check_kind(const KernelLaunch& launch, Written& written, const std::string& where) {
    const kernel::Kernel& kernel = *graph_.kernels[launch.kernel];
    const std::vector<kernel::Access>& accesses = accesses_[launch.kernel];
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      // The mask says which samples run, whether or not the body looks at it.
      const bool looked_at = accesses[i].used || kernel.arguments[i].role == kernel::Role::terminated;
      if (!launch.arguments[i].view || !looked_at) continue;
      EAGLE_RETURN_IF_ERROR(read(kernel.arguments[i].name, *launch.arguments[i].view, written, where));
    }
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      if (launch.arguments[i].view && accesses[i].written) write(*launch.arguments[i].view, written);
    }
    return {};
  }
  Status check_kind(const Reduce& reduce, Written& written, const std::string& where) {
    EAGLE_RETURN_IF_ERROR(read(reduce.x.name, reduce.x.view, written, where));
    write(reduce.out.view, written);
    return {};
  }
  Status check_kind(const Copy& copy, Written& written, const std::string& where) {
    EAGLE_RETURN_IF_ERROR(read(copy_source_name, copy.source, written, where));
    if (copy.index) EAGLE_RETURN_IF_ERROR(read(copy.index->name, copy.index->view, written, where));
    // One row of a stack, and nobody knows which.
    if (!copy.index || !copy.into_stack()) write(copy.destination, written);
    return {};
  }
  // `read` keeps scratch out of the reach of host nodes.
  static Status check_kind(const HostNode&, const Written&, const std::string&) { return {}; }
  static Status check_kind(const Group&, const Written&, const std::string&) { return {}; }  // no leaf is one

  // The body may run never; when it runs again, more is written than the first time. The counter is written
  // before the guard is looked at.
  Status check_kind(const Conditional& conditional, Written& written, const std::string& where) {
    const Guard& guard = conditional.guard;
    if (conditional.iterations) write(conditional.iterations->view, written);
    EAGLE_RETURN_IF_ERROR(read(guard.count.name, guard.count.view, written, where + ": guard"));
    if (guard.baseline) {
      EAGLE_RETURN_IF_ERROR(read(guard.baseline->name, guard.baseline->view, written, where + ": guard"));
    }
    Written body(&written);
    return check(conditional.body, body, where + ": body ");
  }

  void write(const plane::View& view, Written& written) {
    if (!graph_.planes[view.plane].scratch) return;
    written.add(view);
    perhaps_.add(view);
  }

  Status read(std::string_view argument, const plane::View& view, const Written& written,
              const std::string& where) const {
    const Plane& plane = graph_.planes[view.plane];
    if (!plane.scratch || written.covers(view)) return {};
    return {Reason::scratch_plane, where + ": reads " + quote_name(argument) + " from the scratch plane " +
                                       quote_name(plane.label) + missing(view)};
  }

  [[nodiscard]] std::string missing(const plane::View& view) const {
    const std::string nothing = ", and a scratch plane holds nothing between launches; ";
    if (perhaps_.covers(view)) {
      return ", which was written only where a conditional runs" + nothing +
             "write it in a node before the conditional too, read it in the body behind the write, or use "
             "an array";
    }
    if (perhaps_.touches(view.plane)) {
      return ", of which earlier nodes wrote only a part" + nothing + "write all of " +
             plane::to_string(view) + " in earlier nodes, or use an array";
    }
    return " before any node wrote to it" + nothing + "write it in an earlier node, or use an array";
  }

  const Graph& graph_;
  std::vector<std::vector<kernel::Access>> accesses_;  // by kernel
  Written perhaps_;                                    // in bodies that may not run, too
};

// By plane of the graph: the stages that touch it. A conditional touches what its guard and body do.
std::vector<Life> lives_of(const Graph& graph) {
  std::vector<Life> lives(graph.planes.size());
  for (std::uint32_t i = 0; i < lives.size(); ++i) lives[i].plane = i;
  for (const Leaf& leaf : leaves(graph)) {
    for (const auto* views : {&leaf.touches.reads, &leaf.touches.writes}) {
      for (const NamedView& view : *views) {
        Life& life = lives[view.view.plane];
        life.first = std::min(life.first, leaf.stage);
        life.last = leaf.stage;
      }
    }
  }
  return lives;
}

// Hands out blocks of bytes; a block that is free again is given whole to the next that fits into it.
class Blocks {
public:
  std::uint64_t take(std::uint64_t bytes, std::uint32_t first, std::uint32_t last) {
    while (!busy_.empty() && busy_.top().last < first) {
      free_.emplace(busy_.top().bytes, busy_.top().offset);
      busy_.pop();
    }
    Block block{last, bytes, end_};
    if (const auto fits = free_.lower_bound(bytes); fits != free_.end()) {
      block.bytes = fits->first;
      block.offset = fits->second;
      free_.erase(fits);
    } else {
      end_ += bytes;
    }
    busy_.push(block);
    return block.offset;
  }
  [[nodiscard]] std::uint64_t bytes() const { return end_; }

private:
  struct Block {
    std::uint32_t last = 0;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;
    friend bool operator>(const Block& a, const Block& b) { return a.last > b.last; }
  };
  std::priority_queue<Block, std::vector<Block>, std::greater<>> busy_;
  std::multimap<std::uint64_t, std::uint64_t> free_;  // bytes -> offset
  std::uint64_t end_ = 0;
};

}  // namespace

StatusOr<ScratchLayout> lay_out_scratch(const Graph& graph) {
  ScratchLayout layout;
  if (std::none_of(graph.planes.begin(), graph.planes.end(), [](const Plane& one) { return one.scratch; })) {
    return layout;
  }
  Written written;
  EAGLE_RETURN_IF_ERROR(ReadCheck(graph).check(graph.stages, written, ""));
  std::vector<Life> lives = lives_of(graph);
  std::vector<std::size_t> use_of(graph.planes.size());
  for (std::uint32_t i = 0; i < graph.planes.size(); ++i) {
    const Plane& plane = graph.planes[i];
    if (!plane.scratch) continue;
    use_of[i] = layout.uses.size();
    layout.uses.push_back({plane.label, i, plane.bytes, plane.bytes > 0 && lives[i].first != never, 0});
  }
  std::erase_if(lives, [&](const Life& life) {
    return !graph.planes[life.plane].scratch || !layout.uses[use_of[life.plane]].in_memory;
  });
  std::sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) {
    return std::pair(a.first, a.plane) < std::pair(b.first, b.plane);
  });
  Blocks blocks;
  for (const Life& life : lives) {
    ScratchUse& use = layout.uses[use_of[life.plane]];
    if (use.bytes > most_bytes - scratch_alignment - blocks.bytes()) {
      return Status(Reason::graph_limit,
                    "the scratch planes of this graph have more than 2^62 bytes together");
    }
    use.offset = blocks.take(aligned(use.bytes), life.first, life.last);
  }
  layout.bytes = blocks.bytes();
  return layout;
}

void leave_out(ScratchLayout& layout, const std::vector<bool>& in_registers) {
  layout.bytes = 0;
  for (ScratchUse& use : layout.uses) {
    if (in_registers[use.plane]) use = {use.name, use.plane, use.bytes, false, 0};
    if (use.in_memory) layout.bytes = std::max(layout.bytes, use.offset + aligned(use.bytes));
  }
}

}  // namespace eagle::graph
