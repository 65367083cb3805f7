// DeviceRun: a model stepped on a GPU, over planes that lie there, until its samples have finished.
//
// A pass is one CUDA graph: loops whose bodies are the parts of a step, kernels and what was captured of the
// client's own (PlanesOnDevice::works), or, of one kernel whose samples never meet, that kernel taking many
// steps in registers. What a loop looks at is on the device: samples that
// are live, the step at which the pass ends, the wish to stop. Between passes the host measures, records
// rows, and lets others have the thread. Where the driver has no conditionals, or the step has a part that is
// called or cannot be in one, the host launches the parts and looks at the same numbers. The result is the
// CPU's (simulation.h).
//
// For one caller at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/run/control.h"
#include "engine/run/counters.h"
#include "engine/run/cuda/device_exec.h"
#include "engine/run/cuda/graph_backend.h"
#include "engine/run/cuda/routines.h"
#include "engine/step/device_stepper.h"
#include "engine/step/model.h"
#include "engine/step/simulation.h"

namespace eagle::step {

// MIXED_DEVICES where a kernel of the model, or its recording, touches memory of the host, by the names of
// both planes.
Status check_on_device(const Model& model, const run::cuda::PlanesOnDevice& planes);

// Samples of the model that have not finished, by the mask as it is now.
StatusOr<std::int64_t> live_on_device(const Model& model, const run::cuda::PlanesOnDevice& planes);

class DeviceRun final : public DeviceStepper {
public:
  struct Options {
    bool conditionals = true;  // where the driver has them
    // Steps of a body, where they can be taken in registers; the most first, then less.
    std::vector<std::int64_t> fused_steps = {256, 16};
    std::chrono::duration<double> piece{5e-3};  // of a pass, about; 0: as short as can be
  };
  struct Shared {
    std::shared_ptr<const run::Control> control;  // may be null
    std::shared_ptr<run::Counters> counters;
    std::chrono::steady_clock::time_point asked = std::chrono::steady_clock::now();  // for the time to build
  };

  // Of a model that `check_on_device` accepts. `begun`: what is known of the result beforehand. SYSTEM,
  // OUT_OF_MEMORY, what the compiler says.
  static StatusOr<std::unique_ptr<DeviceRun>> build(const run::cuda::PlanesOnDevice& planes, Model model,
                                                    RunResult begun, Shared shared, const Options& options);
  ~DeviceRun() override;

  StatusOr<Simulation::Next> advance() override;
  [[nodiscard]] bool part_way() const override { return at_ == At::within_step; }
  [[nodiscard]] bool ended() const override { return at_ == At::end; }
  [[nodiscard]] std::uint32_t call() const override { return model_.host_steps[next_host_].call; }
  void answer(bool stop) override;
  [[nodiscard]] const RunResult& result() const override { return result_; }

private:
  enum class At : std::uint8_t { begin, whole_step, within_step, calls, end };

  // One of: a chain of kernels, what the client captured, what it is called for.
  struct Part {
    std::vector<run::cuda::DeviceNode> chain;
    std::shared_ptr<const run::cuda::CapturedGraph> captured;
    std::size_t host = none;  // index of the host step
  };
  // A body of so many steps.
  struct Body {
    std::int64_t steps = 1;
    std::vector<Part> parts;
    std::vector<run::cuda::DeviceNode> account;  // behind the parts; the last one counts the steps
  };
  // What the host and the device tell each other, in device memory.
  struct State {
    run::cuda::Beside beside;
    run::cuda::StepState step;
  };
  // What the samples of a shard gave to a reduction in the last step.
  struct Reduced {
    run::cuda::api::DevicePointer at = 0;
    std::uint64_t bytes = 0;
    std::uint32_t plane = 0;  // in `addresses_`
  };
  struct Recorded {
    run::cuda::DeviceNode copy;  // to row 0
    std::int64_t row_bytes = 0;
  };

  DeviceRun(const run::cuda::PlanesOnDevice& planes, Model model, RunResult begun, Shared shared,
            const Options& options);
  // Building.
  Status make_memory();
  [[nodiscard]] std::shared_ptr<const run::cuda::CapturedGraph> captured(const HostStep& step) const;
  [[nodiscard]] bool any_of_host_steps(bool captured) const;  // within the step
  [[nodiscard]] bool captured_parts_write(const plane::View& view) const;
  [[nodiscard]] std::string why_host_loop() const;  // empty: it need not be
  Status make_bodies();
  void add_host_parts(Body& body, std::size_t before) const;
  StatusOr<std::vector<run::cuda::DeviceNode>> recount(run::cuda::DeviceNodes& nodes) const;
  Status make_saves(run::cuda::DeviceNodes& nodes);
  Status add_save(run::cuda::DeviceNodes& nodes, const plane::View& view);
  Status make_records(run::cuda::DeviceNodes& nodes);
  Status make_loops();
  StatusOr<run::cuda::DeviceNode> copy_node(run::cuda::DeviceNodes& nodes, const plane::View& from,
                                            const plane::View& to) const;

  // Running.
  [[nodiscard]] std::optional<RunStatus> asked_to_stop() const;
  Status begin();
  Status count_live(std::int64_t besides, const std::vector<std::int64_t>& limits);
  [[nodiscard]] std::int64_t next_target() const;
  Status pass();
  Status loop_on_host(const std::vector<std::int64_t>& limits);
  Status begin_step();
  StatusOr<Simulation::Next> step_on();  // `again`: the step is whole, or the run has ended
  Status end_step();
  Status enqueue(const run::cuda::DeviceNode& node) const;
  Status enqueue(const std::vector<run::cuda::DeviceNode>& nodes) const;
  Status enqueue(const Part& part) const;
  Status wait() const;
  Status look();  // at what the device says
  [[nodiscard]] bool was_cut() const;
  Status undo();
  void take_counts();
  Status record();
  Status keep_reductions();
  [[nodiscard]] bool call_due();
  Status settle();
  Status end(RunStatus status);

  const run::cuda::PlanesOnDevice planes_;
  const Model model_;
  const Options options_;
  const Shared shared_;
  const bool has_captured_;           // within the step
  const bool has_host_steps_within_;  // which are called
  const bool fused_;
  const bool long_loops_;  // of some kernel

  std::vector<run::cuda::DeviceMemory> scratch_;
  run::cuda::DeviceMemory state_, saved_state_;
  run::cuda::DeviceStream stream_;
  // Where planes are; then the state and what is saved of it; then values of reductions, and what is saved.
  std::vector<run::cuda::api::DevicePointer> addresses_;
  std::vector<run::cuda::DeviceNode> saves_, restores_;
  std::vector<Body> bodies_;  // the one of most steps first, then less; the last one of 1
  std::optional<run::cuda::DeviceNode> count_;
  bool recounts_ = false;  // after each step: what was captured finishes samples
  std::vector<Recorded> recorded_;
  std::vector<Reduced> reduced_;  // in the order of the result's
  std::optional<run::cuda::DeviceExec> loops_;

  At at_ = At::begin;
  RunResult result_;
  State now_;  // as the device said last
  std::chrono::steady_clock::time_point start_;
  std::int64_t live_ = 0;
  std::int64_t live_at_start_ = 0;
  std::int64_t steps_ = 0;   // that every live sample has taken
  std::int64_t before_ = 0;  // before the pass whose calls are being made
  std::int64_t last_pass_ = 0;
  double step_s_ = 0;          // measured; 0: not yet
  std::size_t next_part_ = 0;  // of the step
  std::size_t next_host_ = 0;
  std::int64_t rows_ = 0;
  bool stop_wanted_ = false;
};

}  // namespace eagle::step
