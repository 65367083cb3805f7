// Simulation: a model stepped until its samples have finished, a pass at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"
#include "engine/run/control.h"
#include "engine/run/host.h"
#include "engine/run/kernel_counts.h"
#include "engine/step/shard.h"

namespace eagle {
class Engine;
}
namespace eagle::graph {
struct Touches;
}

namespace eagle::step {

enum class RunStatus : std::uint8_t { finished = 1, max_steps = 2, cancelled = 3, deadline = 4 };
std::string_view name_of(RunStatus status);  // "finished"

// How the kernels of a step share the machine.
enum class Mode : std::uint8_t {
  fused,     // one kernel: many steps of a block of samples with the state in registers
  tiled,     // several: all steps of a pass for one tile of samples after another
  stepwise,  // samples meet, or the client has a part in the step: each kernel over all samples, step by step
};
std::string_view name_of(Mode mode);  // "fused"

// What came of a dispatch group.
struct GroupReport {
  std::string group;
  kernel::DispatchPolicy policy = kernel::DispatchPolicy::automatic;  // how it ran in the end
  std::vector<std::int64_t> counts;  // samples by the branch that they took when they were last looked at
  double gain = 1;                   // predicted: time when fused over time when split
  double measured_gain = 0;          // of the tile that was tried both ways; 0: none was
};

// Samples from where the range before it ends, up to `end`, and how many steps each of them has taken.
struct StepRange {
  std::int64_t end = 0;
  std::int64_t steps = 0;

  bool operator==(const StepRange&) const = default;
};

struct RunReport {
  run::HostIdentity host;
  std::int64_t samples = 0;
  std::int64_t finished = 0;  // samples that this run finished
  std::int64_t launches = 0;  // passes over the samples
  std::int64_t steps = 0;     // the number of the last step that any sample took
  std::int64_t threads = 1;
  run::KernelCounts counts;
  double build_s = 0;
  double wall_s = 0;
  bool compiled = false;
  std::vector<std::string> kernels;  // content hashes
  std::string mode;                  // name_of(Mode)
  std::int64_t fused_steps = 0;      // the most steps that one pass took
  std::int64_t records = 0;          // rows recorded, the initial one included
  std::int64_t compactions = 0;      // times that the live samples of a tile were packed together
  std::vector<GroupReport> dispatch;
  // Of the samples that had not finished when the run ended, in ranges that cover all: one, unless it was
  // stopped with samples at different whole steps. None where all have finished.
  std::vector<StepRange> ranges;
  std::optional<Shard> shard;              // that the run was of
  std::vector<ShardReduction> reductions;  // of a shard: one for each Reduce of the model, in its order
  std::string backend = "cpu";             // where it computed: "cuda:0"
  // On a GPU: "cuda_graph", or "host_loop: ..." with the reason why the host looks after each body of steps.
  std::string schedule;
};

struct RunResult {
  RunStatus status = RunStatus::finished;
  RunReport report;
};

// What the client's part of a step came to.
struct HostAnswer {
  Status status;
  bool stop = false;  // the run ends after this step, finished
};

// A model being stepped until its samples have finished or max_steps is reached (docs/manual/stepping.md).
class Simulation {
public:
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  enum class Next : std::uint8_t {
    again,      // every sample is at a whole step, not all at the same; there is more to do
    host_call,  // run the client's callable `call()` and `answer`; then there may be more to do
    done,       // the run has ended
    failed,     // on a GPU: `failure` says what its driver does; nothing more runs
  };
  // Runs a piece of a pass, or of a step up to a callable of the client's: about as long as a slice
  // (run/cpu/slice.h); what may take longer is a window of one tile, or a step of it. Once somebody wants the
  // run to stop, the call runs to its end: it computes nothing but what brings a pass or a step in hand to a
  // whole step, and the first call of all stores nothing.
  Next advance();
  // Whether something of a pass or a step has run and something is left, and so whether what is left to do
  // once the run is to stop wants the team.
  [[nodiscard]] bool part_way() const;
  [[nodiscard]] bool ended() const;
  [[nodiscard]] std::uint32_t call() const;  // after `host_call`: the client's number
  void answer(bool stop);                    // the callable has run, and wants the run to end or not
  // What it reads and writes (engine/graph/edges.h).
  [[nodiscard]] const graph::Touches& touches() const;
  // Its state so far; complete once `ended()`.
  [[nodiscard]] const RunResult& result() const;
  [[nodiscard]] const Status& failure() const;  // after `failed`

private:
  friend class eagle::Engine;
  struct State;
  struct OnDevice;
  explicit Simulation(std::unique_ptr<State> state);
  explicit Simulation(std::unique_ptr<OnDevice> device);
  std::unique_ptr<State> state_;      // null on a GPU
  std::unique_ptr<OnDevice> device_;  // null on the CPU
};

}  // namespace eagle::step
