// Running one kernel: what is bound to its arguments, and what a stepped run gives back.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "eagle/client/array.h"
#include "engine/kernel/ir.h"
#include "engine/run/kernel_counts.h"
#include "engine/step/simulation.h"

namespace eagle {

using kernel::Kernel;
using step::RunReport;
using step::RunResult;
using step::RunStatus;

// What an argument gets: an array, or a number for a Param.
using Argument = std::variant<ArrayView, double, std::int64_t>;

// A kernel with everything it runs over. `arguments` by name, any order; each exactly once.
struct BoundPlan {
  std::shared_ptr<const Kernel> kernel;
  std::vector<std::pair<std::string, Argument>> arguments;
};

struct SimulateOptions {
  std::int64_t max_steps = 0;                        // required, >= 0
  std::optional<std::chrono::milliseconds> timeout;  // ends the run with status `deadline`
  // Set to true by any thread to end the run between passes, with status `cancelled`.
  std::shared_ptr<std::atomic<bool>> cancel;
};

struct LaunchOptions {
  std::optional<std::chrono::milliseconds> timeout;
  std::shared_ptr<std::atomic<bool>> cancel;
};

struct LaunchReport {
  run::HostIdentity host;
  std::int64_t launches = 0;  // whole replays
  std::int64_t threads = 1;
  double wall_s = 0;
  std::vector<std::int64_t> iterations;  // of each repeat_while, last replay
  run::KernelCounts counts;              // over all replays
};

}  // namespace eagle
