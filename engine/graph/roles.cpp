#include "engine/graph/roles.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "engine/kernel/names.h"

namespace eagle::graph {
namespace {

using kernel::Access;
using kernel::Role;

std::string why(Role role, const Access& access) {
  const std::string survives = "stored, except for samples that have finished: what they had survives";
  switch (role) {
    case Role::read:
      return access.used ? "input: the kernel uses its value" : "input: the kernel never uses its value";
    case Role::mutable_:
      if (!access.written) {
        return access.used ? "state: used, and committed unchanged" : "state: neither used nor changed";
      }
      if (access.used) return "state: the value it had is used, and a new one is stored";
      return "state: the value it had is not used, a new one is " +
             (access.read ? survives : "always stored");
    case Role::output:
      return "output: " + (access.read ? survives : "always stored, whatever was there");
    case Role::terminated:
      return "mask: says which samples have finished, and is stored for the others";
    case Role::table:
      return access.used ? "table: looked up at computed indices, so all of it counts"
                         : "table: the kernel looks nothing up in it";
    case Role::accum:
      return access.used ? "accumulator: its cells are added to, from what they hold"
                         : "accumulator: the kernel adds nothing to it";
    case Role::reduce:
      return "reduction: one element over all samples, always stored";
    case Role::param:
      break;
  }
  return "";
}

class Collector {
public:
  Collector(const Graph& graph, Work& work) : graph_(graph), work_(work) {}

  void add(const KernelLaunch& launch, const std::string& body) {
    const kernel::Kernel& kernel = *graph_.kernels[launch.kernel];
    const std::vector<Access> accesses = kernel::accesses(kernel);
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      if (!launch.arguments[i].view) continue;
      const kernel::Argument& argument = kernel.arguments[i];
      put({argument.name, *launch.arguments[i].view}, accesses[i].read, accesses[i].written,
          body + why(argument.role, accesses[i]));
    }
  }
  void add(const HostNode& host, const std::string& body) {
    for (const NamedView& view : host.reads) put(view, true, false, body + "declared as read");
    for (const NamedView& view : host.writes) put(view, false, true, body + "declared as written");
  }
  void add(const Reduce& reduce, const std::string& body) {
    put(reduce.x, true, false, body + "reduced: all of it is read");
    put(reduce.out, false, true, body + "result: always stored, whatever was there");
  }
  void add(const Copy& copy, const std::string& body) {
    put({std::string(copy_source_name), copy.source}, true, false, body + "copied from");
    const bool one_row = copy.index && copy.into_stack();
    put({std::string(copy_destination_name), copy.destination}, one_row, true,
        body + (one_row ? "copied to, one row of it" : "copied to, all of it"));
    if (copy.index) put(*copy.index, true, false, body + "says which row is copied");
  }
  void add(const Conditional& conditional, const std::string& body) {
    put(conditional.guard.count, true, false, body + "guard: looked at before each run of the body");
    if (conditional.guard.baseline) {
      put(*conditional.guard.baseline, true, false, body + "guard: what the count is compared with");
    }
    if (conditional.iterations) {
      put(*conditional.iterations, false, true, body + "counter: the number of bodies that have run");
    }
    for (const Stage& stage : conditional.body) add_leaves(stage.branches, body + "in the body, ");
  }
  void add(const Group& group, const std::string& body) { add_leaves(group.branches, body); }

  [[nodiscard]] bool complete() const { return complete_; }
  std::vector<PlaneExplanation> take() && { return std::move(planes_); }

private:
  void add_leaves(std::span<const Branch> branches, const std::string& where) {
    for_each_leaf(branches, [&](const Node& node) {
      const std::string here = where + kernel::quote_name(node.label) + ": ";
      visit_kind(node, [&](const auto& kind) { add(kind, here); });
    });
  }

  using Key = std::tuple<std::string, std::uint32_t, std::int64_t, std::uint32_t, plane::Dimensions,
                         plane::Dimensions>;
  struct Known {
    std::size_t plane = 0;          // index
    std::vector<std::string> whys;  // the first few
  };
  static constexpr std::size_t most_whys = 8;

  // A plane that a node reads and writes, or that several nodes of a body touch, is one plane.
  void put(const NamedView& named, bool read, bool written, const std::string& why) {
    const plane::View& view = named.view;
    const auto [found, fresh] = known_.try_emplace(
        Key{named.name, view.plane, view.offset, view.item_bytes, view.shape, view.strides},
        Known{planes_.size(), {}});
    if (fresh && planes_.size() == explain_planes_limit) {
      complete_ = false;
      known_.erase(found);
      return;
    }
    if (fresh) planes_.push_back(explained(named));
    PlaneExplanation& plane = planes_[found->second.plane];
    plane.read = plane.read || read;
    plane.written = plane.written || written;
    std::vector<std::string>& whys = found->second.whys;
    if (whys.size() > most_whys || std::ranges::find(whys, why) != whys.end()) return;
    whys.push_back(why);
    plane.why += (plane.why.empty() ? "" : "; ") + (whys.size() > most_whys ? "and more" : why);
  }

  PlaneExplanation explained(const NamedView& named) {
    PlaneExplanation plane;
    plane.plane = named.name;
    plane.view = named.view;
    plane.memory = graph_.planes[named.view.plane].label;
    plane.first = plane::extent(named.view).first;
    plane.bytes = plane::touched_bytes(named.view,
                                       std::clamp<std::int64_t>(work_.left, 0, plane::shared_bytes_work_cap));
    work_.left -= plane.bytes.steps;
    return plane;
  }

  const Graph& graph_;
  Work& work_;
  std::vector<PlaneExplanation> planes_;
  std::map<Key, Known> known_;
  bool complete_ = true;
};

}  // namespace

StatusOr<std::vector<PlaneExplanation>> explain_planes(const Graph& graph, const Node& node, Work& work) {
  Collector collector(graph, work);
  visit_kind(node, [&](const auto& kind) { collector.add(kind, ""); });
  if (!collector.complete()) {
    return Status(Reason::graph_limit, kernel::quote_name(node.label) + " touches more planes than the " +
                                           std::to_string(explain_planes_limit) + " that can be explained");
  }
  return std::move(collector).take();
}

}  // namespace eagle::graph
