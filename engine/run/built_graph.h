// BuiltGraph and Replay: a graph bound to its memory, and one launch of it in progress.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/graph/address.h"
#include "engine/graph/explain.h"
#include "engine/graph/graph.h"
#include "engine/graph/schedule.h"
#include "engine/graph/scratch.h"
#include "engine/run/control.h"
#include "engine/run/execution.h"
#include "engine/run/kernel_counts.h"
#include "engine/run/node_times.h"

namespace eagle {
class Engine;
}

namespace eagle::run {

class CpuProgram;      // engine/run/cpu/program.h
class DeviceBackend;   // engine/run/device_backend.h
struct Counters;       // engine/run/counters.h
class FusedFunctions;  // engine/run/fusion.h

}  // namespace eagle::run

namespace eagle::codegen {
class Code;
}

namespace eagle::run {

// The bytes of one plane of a description, in its order. `data` is null for memory that this process
// cannot reach (a client's private arrays in the daemon).
struct PlaneMemory {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

// A graph that is compiled and bound to its memory.
class BuiltGraph {
public:
  ~BuiltGraph();
  BuiltGraph(const BuiltGraph&) = delete;
  BuiltGraph& operator=(const BuiltGraph&) = delete;

  [[nodiscard]] const graph::Graph& graph() const { return graph_; }
  [[nodiscard]] const std::vector<graph::StageSchedule>& schedule() const { return schedule_; }
  [[nodiscard]] std::vector<std::string> node_labels() const;
  [[nodiscard]] bool compiled() const { return compiled_; }  // false: all code came from the cache
  [[nodiscard]] double build_s() const { return build_s_; }
  [[nodiscard]] int threads() const { return threads_; }
  // So many replays, one after the other, are sure to have ended within a millisecond or so: nothing in them
  // waits, and what they compute is known beforehand to be little.
  [[nodiscard]] std::int64_t brief_replays() const;
  [[nodiscard]] const graph::ScratchLayout& scratch() const { return scratch_; }
  [[nodiscard]] Execution execution() const;  // made for the caller
  // A launch of it can be begun and left (`Replay::begin`): it is on a GPU, and needs the host for nothing.
  [[nodiscard]] bool enqueues() const;
  // Where it runs: "cpu", "cuda:0".
  [[nodiscard]] const std::string& backend() const;
  // What was compiled for it, as far as `most_reported_nodes` and `_bytes` go; for looking at.
  [[nodiscard]] std::vector<CompiledFunction> functions() const;
  // What its nodes take, as far as it is known; from any thread, while it runs.
  [[nodiscard]] NodeTimes times() const;
  // Why and how a node or two of it, as graph::explain says, with how it is executed.
  [[nodiscard]] StatusOr<graph::Explanation> explain(const graph::NodeReference& node,
                                                     const std::optional<graph::NodeReference>& other) const;

  // New numbers for Params: all of them or, where one is refused, none. Not while a replay of it is under
  // way. UNKNOWN_NAME, WRONG_DTYPE, BAD_VALUE.
  Status update(const std::vector<graph::ParamUpdate>& updates);
  // What a rebind gave is to be the graph from now on. Cannot fail.
  void keep();

private:
  friend class eagle::Engine;
  friend class Replay;
  BuiltGraph() = default;
  Status keep_params_of(const BuiltGraph& other);

  graph::Graph graph_;  // as it was described; the numbers of Params are those of the program
  std::vector<graph::StageSchedule> schedule_;
  graph::ScratchLayout scratch_;
  graph::Fusion fusion_ = graph::Fusion::off;
  std::shared_ptr<std::byte> scratch_memory_;               // of the program's planes
  std::vector<std::shared_ptr<const codegen::Code>> code_;  // by kernel; null where no launch runs by itself
  std::shared_ptr<FusedFunctions> functions_;               // what was fused; whoever binds reads and adds
  std::unique_ptr<CpuProgram> program_;                     // null on a GPU
  std::shared_ptr<DeviceBackend> device_;                   // null on the CPU
  bool to_keep_ = false;                                    // `device_` is another graph's until then
  std::shared_ptr<Counters> counters_;                      // of a graph on a GPU
  bool compiled_ = false;
  bool long_loops_ = false;  // of some kernel
  double build_s_ = 0;
  int threads_ = 1;
};

// One `launch(n)` in progress. It stops where the client must act or its turn is over, and goes on
// afterwards, from any one thread at a time; the OpenMP team is that of the thread that calls `advance`.
class Replay {
public:
  enum class Next { done, host_call, again };

  // `graph` outlives the replay. count >= 0 (BAD_VALUE is the caller's to give).
  Replay(BuiltGraph& graph, std::int64_t count, std::shared_ptr<const Control> control);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Runs until the launch is done, a host node is reached, or its slice (cpu/slice.h) is over and something
  // is left (`again`); at least one instruction, or a piece of one. After `host_call`, run `call()` and
  // advance again; after `again`, advance again, now or once others have had the thread. What may last longer
  // than a slice is one chunk of a thread: some samples with long loops inside, one block of a group. To give
  // up, drop the replay. CANCELLED and DEADLINE say how many replays were whole.
  // Loops of kernels, too, heed whatever stops a launch whose control has a caller's flag; without one they
  // heed `Control::cancel` alone.
  StatusOr<Next> advance();
  // Of a graph that enqueues: gives the GPU what may be under way of it, and returns; before the first
  // `advance`. Then `ready` says, without waiting, whether the next one has nothing to wait for.
  Status begin();
  [[nodiscard]] bool ready() const;
  [[nodiscard]] std::uint32_t call() const;     // the host node's number
  [[nodiscard]] std::int64_t launches() const;  // whole replays so far
  // Whether something of a replay has run and something is left: dropped now, the launch leaves what it
  // writes half written.
  [[nodiscard]] bool part_way() const;
  // Bodies run by each repeat_while in the last replay, in the order of its loops.
  [[nodiscard]] const std::vector<std::int64_t>& iterations() const;
  [[nodiscard]] const KernelCounts& counts() const;  // over all replays so far

private:
  struct State;
  struct OnDevice;
  std::unique_ptr<State> state_;  // null on a GPU
  std::unique_ptr<OnDevice> device_;
};

}  // namespace eagle::run
