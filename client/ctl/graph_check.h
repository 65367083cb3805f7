// Graphs made up from a seed, run on the CPU and on a GPU from the same bytes.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/status.h"
#include "engine/engine.h"
#include "engine/run/cuda/device_modules.h"

namespace eagle::ctl {

struct GraphCheck {
  std::string difference;  // plane, element and both values; empty: none
  std::size_t nodes = 0;
  std::size_t parents = 0;  // of all nodes together
};

// One graph of a dozen launches or so over a few arrays, in place and not, some of them in groups; replayed,
// then replayed again with other numbers for its Params. `forget`: a parent that the GPU is not told of,
// counted from 0 over all nodes; for the test that such a one is noticed. Errors of either side.
StatusOr<GraphCheck> check_graph(Engine& engine, run::cuda::DeviceModules& modules, std::uint64_t seed,
                                 std::int64_t forget = -1);

}  // namespace eagle::ctl
