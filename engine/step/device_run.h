// DeviceRun: a model stepped on a device until its samples have finished.
//
// One CUDA graph: a loop whose body is the kernels of a step, or of several where there is one kernel and its
// samples never meet (they then take them in registers). What the loop looks at is counted on the device:
// samples that are live and steps that are left. Where the driver has no conditionals, the host launches the
// body and looks at the same numbers. The result is the CPU's (simulation.h).
//
// For one caller at a time, but for `cancel`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/run/control.h"
#include "engine/run/cuda/device_exec.h"
#include "engine/run/cuda/device_modules.h"
#include "engine/run/cuda/routines.h"
#include "engine/step/model.h"
#include "engine/step/simulation.h"

namespace eagle::step {

class DeviceRun {
public:
  struct Options {
    bool conditionals = true;        // where the driver has them
    std::int64_t fused_steps = 256;  // of a body, where steps can be taken in registers
  };

  // Planes of its own, cleared, in the order of the model. BAD_VALUE names what a run on a device does not
  // have: callables of the client, recorded planes, shards. SYSTEM, OUT_OF_MEMORY, what the compiler says.
  static StatusOr<std::unique_ptr<DeviceRun>> build(run::cuda::DeviceModules& modules, const Model& model,
                                                    const Options& options);
  static StatusOr<std::unique_ptr<DeviceRun>> build(run::cuda::DeviceModules& modules, const Model& model) {
    return build(modules, model, Options());
  }

  // All bytes of a plane. Not while it runs.
  Status write(std::uint32_t plane, std::span<const std::byte> from) const;
  Status read(std::uint32_t plane, std::span<std::byte> to) const;

  // From the planes as they are to the end: FINISHED, MAX_STEPS or, at a whole step, CANCELLED. Again, where
  // it is called again. A fault of the device is what its driver says.
  StatusOr<RunResult> run();
  // From any thread: ends it at the next whole step.
  Status cancel() const;

  // "cuda_graph", or "host_loop: ..." with the reason.
  [[nodiscard]] const std::string& schedule() const { return schedule_; }

private:
  // A body of so many steps.
  struct Body {
    std::int64_t steps = 1;
    std::vector<run::cuda::DeviceNode> kernels;
    run::cuda::DeviceNode account;              // behind the kernels
    std::optional<run::cuda::DeviceExec> exec;  // where the host loops
  };

  DeviceRun() = default;
  Status make_memory(const Model& model);
  Status make_bodies(run::cuda::DeviceModules& modules, const Model& model, std::int64_t fused_steps);
  Status make_loops();
  StatusOr<run::cuda::api::GraphNode> add_body(const run::cuda::DeviceExec& exec, run::cuda::api::Graph into,
                                               const Body& body,
                                               std::vector<run::cuda::api::GraphNode> before);
  Status count_live() const;
  Status loop_on_host();
  StatusOr<run::cuda::StepState> state() const;

  std::shared_ptr<const run::cuda::Device> device_;
  std::vector<run::cuda::DeviceMemory> planes_;
  std::vector<run::cuda::DeviceMemory> scratch_;
  run::cuda::DeviceMemory beside_;
  run::cuda::DeviceMemory state_;
  run::cuda::DeviceStream stream_;
  std::vector<Body> bodies_;  // the one of most steps first
  std::optional<run::cuda::DeviceNode> count_;
  std::optional<run::cuda::DeviceExec> loops_;
  std::string schedule_;
  std::string mode_;
  std::int64_t samples_ = 0;
  std::int64_t max_steps_ = 0;
};

}  // namespace eagle::step
