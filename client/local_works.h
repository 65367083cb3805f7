// LocalWorks: what callables of a graph or a run in this process do on its GPU themselves
// (eagle/client/gpu_work.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "eagle/client/gpu_work.h"
#include "engine/base/status.h"
#include "engine/graph/graph.h"
#include "engine/run/cuda/captured_graph.h"
#include "engine/run/cuda/device_program.h"
#include "engine/step/model.h"

namespace eagle {

class LocalWorks {
public:
  LocalWorks() = default;
  // Captures, and copies what was captured, for `graph` to be built with; by the node's name: GRAPH_STATE
  // where that cannot be, and what the callable itself says or throws.
  static StatusOr<LocalWorks> prepare(const graph::Graph& graph, const GpuWorks& works,
                                      const std::shared_ptr<const run::cuda::Device>& device);
  // The same for a run of `model`, by the works' names.
  static StatusOr<LocalWorks> prepare(const step::Model& model, const GpuWorks& works,
                                      const std::shared_ptr<const run::cuda::Device>& device);
  [[nodiscard]] const run::cuda::DeviceWorks& on_device() const { return on_device_; }

  // Before a launch, and in a run after each callable: GRAPH_STATE, by the node's name, where a package's
  // graph is another one now.
  [[nodiscard]] Status check() const;
  // After one.
  void over() const;

private:
  struct Child {
    std::string where;  // "node 'model'"
    std::shared_ptr<const GpuWork> work;
    std::uint64_t original = 0;
    std::shared_ptr<const run::cuda::CapturedGraph> copy;
  };
  Status add(std::uint32_t call, const std::string& where, const std::shared_ptr<const GpuWork>& work,
             const std::shared_ptr<const run::cuda::Device>& device);

  bool of_run_ = false;
  run::cuda::DeviceWorks on_device_;
  std::vector<Child> children_;
  std::vector<std::shared_ptr<const GpuWork>> told_;  // when a launch is over
};

}  // namespace eagle
