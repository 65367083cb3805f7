// Fusing the functions of a plan: neighbours of a sample group become one compiled kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "engine/base/status.h"
#include "engine/codegen/compiler.h"
#include "engine/graph/graph.h"
#include "engine/graph/sample_groups.h"
#include "engine/kernel/fuse.h"

namespace eagle::run {

// EAGLED_FUSION where set ("off", "blocks", "full"), else full. BAD_VALUE names what is known.
StatusOr<graph::Fusion> default_fusion();

// A function of several launches, compiled. The same for equal chains over other planes.
struct FusedCode {
  kernel::Fused fused;
  std::shared_ptr<const codegen::Code> code;
};

// What was fused for one graph, kept with it so that other planes need no compiling. For one caller at a
// time.
class FusedFunctions {
public:
  // The kernels of the parts and how they share planes: all that the code depends on.
  using Key = std::vector<std::uint32_t>;
  std::map<Key, std::shared_ptr<const FusedCode>> made;  // null: cannot be fused after all

  // A graph that is given other planes for ever forgets what it fused now and then.
  static constexpr std::size_t most = 4096;
};

struct FusedPlan {
  graph::GroupedPlan grouped;
  // By group, by function: its code; null where one launch runs with the code of its kernel.
  std::vector<std::vector<std::shared_ptr<const FusedCode>>> code;
  // By plane of the graph: scratch whose values never leave registers.
  std::vector<bool> in_registers;
  bool compiled = false;  // something did not come from a cache
};

using Compile = std::function<StatusOr<codegen::Compiler::Compiled>(const kernel::Kernel& kernel)>;

// Groups the launches of a plan and fuses functions. A function that the verifier or the compiler refuses
// (too large, too slow to compile) runs launch by launch. `functions` is read and added to. CANCELLED where
// the compiler says so.
// `scratch` is how the graph's scratch planes lie, and has to stay so but for those in registers.
StatusOr<FusedPlan> fuse_plan(const graph::Graph& graph, const graph::RunPlan& plan,
                              const graph::ScratchLayout& scratch, graph::Fusion fusion,
                              FusedFunctions& functions, const Compile& compile);

}  // namespace eagle::run
