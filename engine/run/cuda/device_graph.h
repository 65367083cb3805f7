// DeviceGraph: a graph on one device, over planes of its own or of others there: a DeviceProgram with its
// memory, and its launches.
//
// For one caller at a time, but for `cancel`. Building is serialised by device; launches of several graphs of
// one device run as the device likes, which knows nothing of planes that two of them share.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/graph/address.h"
#include "engine/graph/graph.h"
#include "engine/run/control.h"
#include "engine/run/cuda/device.h"
#include "engine/run/cuda/device_modules.h"
#include "engine/run/cuda/device_program.h"

namespace eagle::run::cuda {

class DeviceGraph {
public:
  enum class Next { done, host_call, again };

  // `planes`: of the description, in its order; null: made here, and cleared; without an address: of no use
  // to the device. Everything that `lower` refuses; BAD_VALUE for a plane that is smaller than the
  // description says; SYSTEM where the driver has no graphs; OUT_OF_MEMORY.
  static StatusOr<std::unique_ptr<DeviceGraph>> build(
      DeviceModules& modules, const graph::Graph& graph,
      std::vector<std::shared_ptr<const DeviceMemory>> planes = {}, const LoweringOptions& options = {});
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  [[nodiscard]] const std::vector<DeviceStage>& schedule() const { return program_.stages; }
  [[nodiscard]] const std::vector<graph::StageSchedule>& schedule_by_stage() const {
    return program_.schedule;
  }
  // What it made on the device for itself, as `LoweringOptions::account` was asked for: planes that nobody
  // gave it, notes, values on their way. (A few hundred bytes beside them are nobody's.)
  [[nodiscard]] std::uint64_t own_bytes() const { return own_bytes_; }
  // Whether a launch needs nobody: it is one CUDA graph, enqueued as often as asked for.
  [[nodiscard]] bool is_whole() const;

  // The bytes of a plane of the description, all of them. Not while a launch is under way.
  Status write(std::uint32_t plane, std::span<const std::byte> from) const;
  Status read(std::uint32_t plane, std::span<std::byte> to) const;

  // So many replays, one after the other. Of a whole graph they are enqueued and this returns before they are
  // done. BAD_VALUE while a launch is under way that needs the host.
  Status launch(std::int64_t count, std::shared_ptr<const Control> control = nullptr);
  // Goes on until the launch is done or a host node is reached: run `call()`, then advance again. One with a
  // stream of its own is called while the device computes: what it enqueues there comes behind it. Enqueued
  // launches are waited for. CANCELLED and DEADLINE say how many replays were whole; a fault of the device is
  // what its driver says, and stays.
  StatusOr<Next> advance();
  // The same, and comes back (`again`) when some of the replays have ended; where the host has a part, after
  // some milliseconds, at the next step of its, which may be in the middle of a replay.
  StatusOr<Next> advance_some();
  // Whether `advance_some` would wait for nothing: what is enqueued of a whole graph is done, or has failed.
  [[nodiscard]] bool ready() const;
  // Something of a replay has run that is not whole: dropped now, or having been stopped there, what it
  // writes is half written.
  [[nodiscard]] bool part_way() const { return cut_short_ || (position_ > 0 && launches_ < wanted_); }
  // What is left of the launch does not run; what is under way is waited for.
  void give_up();
  [[nodiscard]] std::uint32_t call() const { return call_; }
  // `advance` for a graph without host nodes; what was counted since the last one.
  StatusOr<codegen::DeviceCounts> wait();
  // Loops and conditionals under way end as soon as they look; from any thread.
  Status cancel() const;
  // Bodies that each loop ran in the last replay, once it is done.
  [[nodiscard]] const std::vector<std::int64_t>& iterations() const { return iterations_; }
  [[nodiscard]] std::int64_t launches() const { return launches_; }  // whole replays of the last launch
  // What was counted since it was last asked. Not while a launch is under way.
  StatusOr<codegen::DeviceCounts> take_counts();

  // New numbers for Params from the next launch on, launches that are under way keeping theirs: all of them
  // or, where one is refused or the device fails to take them, none. UNKNOWN_NAME, WRONG_DTYPE, BAD_VALUE;
  // OUT_OF_MEMORY, SYSTEM.
  Status update(const std::vector<graph::ParamUpdate>& updates);
  // All their numbers, by launch and argument; for another graph of the same description.
  using Params = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>;
  [[nodiscard]] Params params() const;
  Status set_params(const Params& params);

  // Other planes, likewise: `graph` is this one over them (graph::check_same_structure), `planes` and
  // `options` are as for `build`; planes that are to be made here are those that were. The nodes of the CUDA
  // graphs get other words; parts with conditionals are made executable anew. False, and nothing has changed,
  // where that is not enough (`lower_again`; scratch planes of other sizes). Where the device fails to take
  // them, all is as it was. Then either call follows before the next launch or change.
  StatusOr<bool> rebind(DeviceModules& modules, const graph::Graph& graph,
                        std::vector<std::shared_ptr<const DeviceMemory>> planes,
                        const LoweringOptions& options = {});
  // What it had is let go: its planes once the launches under way are done.
  void keep_rebind();
  // It has again what it had. What the device does not take back is made executable anew, by the next launch
  // if there is no memory for it now.
  void undo_rebind();
  [[nodiscard]] std::size_t retired() const { return retired_.size(); }  // planes that are so kept

private:
  DeviceGraph() = default;
  using Planes = std::vector<std::shared_ptr<const DeviceMemory>>;
  Status make_memory(Planes planes, const Account& account);
  [[nodiscard]] bool give_own(Planes& planes, const graph::Graph& graph) const;
  using Words = std::map<std::size_t, std::vector<std::uint64_t>>;  // by node
  Status apply(const Words& before);
  Status change(std::size_t node);
  void restore(const Words& before);
  [[nodiscard]] std::set<std::uint32_t> made_anew(const Words& nodes) const;
  void exchange(graph::Graph& graph, Planes& planes, DeviceProgram& program);
  Status run_part(std::uint32_t part);
  Status enqueue_whole();
  Status enqueue_rest();
  Status settle();
  Status wait_for_stream();
  StatusOr<Next> run_program();
  StatusOr<Next> run_next();
  Status hand_over(api::Stream to);
  Status take_back();
  Status catch_up();
  StatusOr<bool> holds(const graph::Guard& guard) const;
  Status store_counter(std::uint32_t loop) const;
  Status finish_replay();
  Status stopped() const;

  std::shared_ptr<const Device> device_;
  graph::Graph graph_;
  Planes planes_;
  Planes own_planes_;  // of those, what was made here, in their order
  Planes retired_;
  std::uint64_t own_bytes_ = 0;
  DeviceMemory beside_;
  DeviceMemory ran_;  // bodies, by loop
  DeviceStream stream_;
  DeviceEvent before_;  // what a callable's own stream waits for
  DeviceEvent after_;   // and what waits for it
  DeviceProgram program_;

  std::shared_ptr<const Control> control_;
  std::int64_t wanted_ = 0;    // replays of the launch in hand
  std::int64_t launches_ = 0;  // whole ones
  std::int64_t enqueued_ = 0;  // and not waited for
  std::int64_t bunch_ = 1;     // so many are enqueued before somebody looks whether they are still wanted
  std::chrono::steady_clock::time_point bunch_began_;
  std::uint32_t position_ = 0;
  bool ahead_ = false;                  // of a program: something is enqueued that nobody has waited for
  std::optional<api::Stream> lent_to_;  // the stream of the callable that is being called
  bool heeds_ = false;                  // something on the device looks at the cancel word, and may last
  bool cut_short_ = false;              // the last launch was stopped part way
  std::uint32_t call_ = 0;
  std::vector<std::int64_t> iterations_;
  // What it had before a rebind that is neither kept nor undone.
  struct Before {
    graph::Graph graph;
    Planes planes;
    DeviceProgram program;  // without parts and scratch
    Words words;            // of the nodes that have changed
  };
  std::optional<Before> before_rebind_;
  Status broken_;  // the device has words that nobody could take back
};

}  // namespace eagle::run::cuda
