// DifferentialReplay: a graph computed on the CPU and on a GPU from the same bytes, and where the two differ.
//
// Neither side touches anybody's planes: the CPU computes on copies that the caller has made, the GPU on
// memory that is made here. For one caller at a time; outlives neither the engine nor the copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/engine.h"
#include "engine/graph/address.h"
#include "engine/graph/edges.h"
#include "engine/graph/graph.h"
#include "engine/run/built_graph.h"
#include "engine/run/control.h"
#include "engine/run/cuda/devices.h"

namespace eagle {

// Where the two results differ first: in the order of the nodes, and of the elements of what a node writes.
struct Difference {
  enum class What {
    element,     // of an array that a node writes
    byte,        // of a plane that no node writes there
    iterations,  // of a loop
    counts,      // what kernels put right instead of failing
  };
  What what = What::element;
  std::string plane;                // label
  std::string node;                 // label
  std::string argument;             // of the node
  std::vector<std::int64_t> index;  // of the element; of the byte, in its plane; of the loop
  std::string cpu;                  // both values as text that has every bit
  std::string gpu;
  std::optional<std::uint64_t> ulps;  // between two reals, both numbers
};
// "node 'step', 'x' (plane 'speed')[3, 0]: 1.5 on the CPU, 1.25 on the GPU, 2251799813685248 ULPs apart"
std::string to_string(const Difference& difference);

class DifferentialReplay {
public:
  struct Asked {
    std::vector<graph::ParamUpdate> params;  // numbers that Params have now
    std::int64_t count = 1;                  // replays
    std::shared_ptr<const run::Control> control;
  };
  // GRAPH_STATE for a graph with callables of a client; all that `Engine::build` says, of either side.
  // `copies`: one a declaration, where a plane has memory; `scratch` and `account` as for builds; the copies
  // on the GPU are the caller's to pay for. The bytes may be filled in later, before the first turn.
  static StatusOr<std::unique_ptr<DifferentialReplay>> create(
      Engine& engine, const v1::GraphDescription& description, Asked asked,
      std::span<const run::PlaneMemory> copies, std::shared_ptr<const run::cuda::Devices::Unit> unit,
      const Engine::MakeScratch& scratch = {}, const run::cuda::Account& account = {},
      const GivenUp& given_up = {});
  DifferentialReplay(const DifferentialReplay&) = delete;
  DifferentialReplay& operator=(const DifferentialReplay&) = delete;

  [[nodiscard]] const run::BuiltGraph& on_cpu() const { return *cpu_; }
  [[nodiscard]] const run::BuiltGraph& on_gpu() const { return *gpu_; }

  // A turn of the work, as Replay::advance. Whether all of it is done. CANCELLED, DEADLINE; a fault of the
  // GPU.
  StatusOr<bool> advance();
  // Once it is done. A NaN is equal to any other: its bits are not promised. What the driver says.
  StatusOr<std::optional<Difference>> compare() const;

private:
  DifferentialReplay() = default;
  Status send() const;
  StatusOr<std::optional<Difference>> compare_planes() const;

  std::unique_ptr<run::BuiltGraph> cpu_;
  std::unique_ptr<run::BuiltGraph> gpu_;
  std::vector<run::PlaneMemory> copies_;                                   // by plane
  std::vector<std::shared_ptr<const run::cuda::DeviceMemory>> on_device_;  // likewise; null: none
  std::optional<run::Replay> cpu_replay_;
  std::optional<run::Replay> gpu_replay_;
  bool sent_ = false;
  bool cpu_done_ = false;
};

}  // namespace eagle
