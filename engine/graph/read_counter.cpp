// Counters of loops: the cells that tell a body how many of its like have run.
#include <limits>
#include <string>
#include <variant>

#include "eagle/v1/plane.pb.h"
#include "engine/graph/leaf_maker.h"
#include "engine/graph/wire.h"
#include "engine/kernel/names.h"
#include "engine/plane/overlap.h"

namespace eagle::graph {
namespace {

using kernel::quote_name;

class CounterCheck {
public:
  explicit CounterCheck(const Graph& graph) : maker_(graph) {}

  // `prefix`: where the stages stand, "" or "node 2 'loop': body ".
  [[nodiscard]] Status check(const std::vector<Stage>& stages, const std::string& prefix) const {
    std::uint32_t number = 0;
    Status status;
    for (const Stage& stage : stages) {
      for_each_leaf(stage.branches, [&](const Node& node) {
        const std::string where = prefix + "node " + std::to_string(number++) + " " + quote_name(node.label);
        const auto* const conditional = as<Conditional>(node);
        if (conditional == nullptr || !status.ok()) return;
        status = check_loop(*conditional, where);
        if (status.ok()) status = check(conditional->body, where + ": body ");
      });
    }
    return status;
  }

private:
  [[nodiscard]] Status check_loop(const Conditional& loop, const std::string& where) const {
    if (!loop.iterations) return {};
    for (const Leaf& leaf : maker_.leaves(loop.body)) {
      for (const NamedView& written : leaf.touches.writes) {
        if (!plane::overlap(loop.iterations->view, written.view).overlaps) continue;
        return {Reason::bad_value, where + ": its counter " + quote_name(loop.iterations->name) +
                                       " is written by the loop alone, and " + quote_name(leaf.node->label) +
                                       " in its body writes " + quote_name(written.name) +
                                       ", which shares bytes with it; give the loop a cell of its own"};
      }
    }
    return {};
  }

  LeafMaker maker_;
};

}  // namespace

StatusOr<NamedView> read_counter(const v1::NamedView& message, const std::vector<Plane>& planes,
                                 std::int64_t max_iterations, std::string_view where,
                                 PrivateKernelPlanes private_planes, std::uint32_t name_bytes) {
  EAGLE_ASSIGN_OR_RETURN(NamedView cell, read_named_view(message, planes, where, name_bytes));
  const std::string here = std::string(where) + " " + quote_name(cell.name);
  if (private_planes == PrivateKernelPlanes::refused) {
    EAGLE_RETURN_IF_ERROR(refuse_private(planes[cell.view.plane], here, "the loop"));
  }
  const plane::DType dtype = cell.view.dtype;
  if (dtype != plane::DType::i64 && dtype != plane::DType::i32) {
    return Status(Reason::wrong_dtype, here + ": expected int64 or int32, found " +
                                           std::string(dtype == plane::DType::other ? "another element type"
                                                                                    : plane::name_of(dtype)) +
                                           "; make it with np.zeros(1, dtype=np.int64)");
  }
  if (const std::int64_t found = plane::elements(cell.view); found != 1) {
    return Status(Reason::wrong_shape, here + ": expected one element, found " + std::to_string(found));
  }
  if (dtype == plane::DType::i32 && max_iterations > std::numeric_limits<std::int32_t>::max()) {
    return Status(Reason::bad_value, here + ": an int32 cannot count to " + std::to_string(max_iterations) +
                                         "; make it int64, or allow fewer iterations");
  }
  return cell;
}

Status check_counters(const Graph& graph) { return CounterCheck(graph).check(graph.stages, ""); }

}  // namespace eagle::graph
