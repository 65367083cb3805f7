// Running one kernel: what is bound to its arguments, and what a stepped run gives back.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "eagle/client/array.h"
#include "engine/kernel/ir.h"
#include "engine/kernel/transform.h"
#include "engine/run/kernel_counts.h"
#include "engine/step/simulation.h"

namespace eagle {

using kernel::Kernel;
using step::RunReport;
using step::RunResult;
using step::RunStatus;
using step::Shard;

// What an argument gets: an array, or a number for a Param.
using Argument = std::variant<ArrayView, double, std::int64_t>;

// A kernel with everything it runs over. `arguments` by name, any order; each exactly once.
struct BoundPlan {
  std::shared_ptr<const Kernel> kernel;
  std::vector<std::pair<std::string, Argument>> arguments;
};

// Rows of planes as a run goes on: after steps `every`, 2 * `every`, ..., and before the first one where
// `initial`.
struct RecordOptions {
  // A plane of the model, by the name of an argument, and where its rows go: (rows, N) or (rows, components,
  // N), row-major, of the plane's dtype. Row r goes to r modulo the rows that there are.
  std::vector<std::pair<std::string, ArrayView>> planes;
  std::int64_t every = 1;
  bool initial = true;
};

// Something of the caller's own between two steps of a run: called in the calling thread after steps `every`,
// 2 * `every`, ...; an error ends the run and is what `simulate` returns. Not called once every sample has
// finished.
struct BetweenSteps {
  std::function<step::HostAnswer()> call;
  std::int64_t every = 1;
};

struct RunProgress {
  std::int64_t steps = 0;     // the last one that any sample took
  std::int64_t finished = 0;  // samples that the run finished so far
};

struct SimulateOptions {
  std::int64_t max_steps = 0;                             // required, >= 0
  std::optional<std::chrono::milliseconds> timeout = {};  // ends the run with status `deadline`
  // Set to true by any thread to end the run between passes, with status `cancelled`.
  std::shared_ptr<std::atomic<bool>> cancel = {};
  std::int64_t steps = 0;  // that one pass takes; 0: as many as suit
  // How dispatch groups that their author left open run; an empty name is all of them.
  std::vector<kernel::PolicyChoice> dispatch = {};
  RecordOptions record = {};
  // int64 (N,): gets the number of the step in which each sample finishes; other elements stay as they are.
  std::optional<ArrayView> stop_steps = {};
  std::vector<BetweenSteps> between = {};
  // Called in the calling thread now and then; false ends the run with status `cancelled`.
  std::function<bool(const RunProgress&)> progress = {};
  // The arrays hold these samples of a larger batch, and compute what they would in a run of all of it
  // (shards.h).
  std::optional<Shard> shard = {};
  // As of LaunchOptions.
  std::function<void()> waiting = {};
};

struct LaunchOptions {
  std::optional<std::chrono::milliseconds> timeout;
  std::shared_ptr<std::atomic<bool>> cancel;
  // Called by the thread that waits for a daemon: before it sleeps for the first time, and every few
  // milliseconds from then on. It may set `cancel`.
  std::function<void()> waiting = {};
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
