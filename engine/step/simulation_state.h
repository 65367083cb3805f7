// What a Simulation is made of. For the engine, which fills it, and for the .cpp files of this folder.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/graph/edges.h"
#include "engine/run/control.h"
#include "engine/run/counters.h"
#include "engine/run/cpu/piece.h"
#include "engine/run/cpu/shared_launch.h"
#include "engine/run/loop_watch.h"
#include "engine/step/bound_model.h"
#include "engine/step/device_stepper.h"
#include "engine/step/pace.h"
#include "engine/step/recorder.h"
#include "engine/step/simulation.h"
#include "engine/step/tile.h"
#include "engine/step/tile_runner.h"

namespace eagle::step {

struct Simulation::State {
  using Clock = std::chrono::steady_clock;

  // Filled by the engine.
  BoundModel model;
  std::vector<HostStep> host_steps;
  graph::Touches touches;
  std::optional<Recorder> recorder;
  Mode mode = Mode::fused;
  std::int64_t max_steps = 0;
  std::int64_t steps_per_pass = 0;  // 0: as many as suit
  int team = 1;
  std::vector<run::ThreadSpace> spaces;  // one a thread, where a kernel shares
  std::shared_ptr<const run::Control> control;
  std::shared_ptr<run::Counters> counters;
  // What the branches of a group cost, where that is not to be measured (tests).
  std::function<std::optional<BranchCosts>(const std::string& group)> known_costs;
  bool packs = true;  // samples of a tile together, where that pays
  double piece_s = run::usual_piece_s;
  RunResult result;  // of a shard, with its reductions in the order of kernels

  // Kept by the simulation.
  bool started = false;
  bool has_tiles = false;  // all of them have been found
  bool ended = false;
  Clock::time_point start;
  std::int64_t samples_per_tile = 0;
  std::int64_t found = 0;   // samples that are in tiles; all of them once the run has begun
  std::vector<Tile> tiles;  // with live samples
  std::vector<Tile> out;    // without; kept where they are still to be recorded or counted
  std::int64_t steps = 0;   // that every live sample has taken
  double tile_step_s = 0;   // measured: one step of one tile, for the whole team
  Stepping stepping;
  std::optional<run::LoopWatch> loop_watch;
  std::vector<std::vector<std::int16_t>> branches;
  std::vector<double> measured_gains;
  // Of a pass in hand: every tile is to come to `target`. Those from `next_tile` on have not been touched,
  // those of `behind` were left on their way, the others are there.
  std::optional<std::int64_t> target;
  std::size_t next_tile = 0;
  std::vector<std::size_t> behind;
  Progress pass_progress;
  Spent pass_spent;
  double visit_s = 0;  // that it was expected to cost
  // Of a step in hand (stepwise), of its kernel in hand, and of the client's part in it.
  std::size_t next_kernel = 0;
  std::size_t next_record = 0;  // tile, once all kernels have run
  run::Progress kernel_progress;
  run::BoundLaunch::Outcome kernel_outcome;
  std::vector<run::Place> places;  // one a thread
  std::size_t next_host = 0;
  std::int64_t before = 0;  // steps before the pass whose calls are being made
  bool in_calls = false;    // between a pass and the next
  bool in_step = false;     // stepwise
  bool step_taken = false;  // all but the recording of it
  // Of the step in hand, which may be undone: what it counts, and of a shard the nodes of each reduction.
  Progress step_progress;
  std::vector<std::pair<std::size_t, std::vector<run::Partial::Node>>> step_nodes;
  bool stop_wanted = false;
  std::int64_t live_at_start = 0;
  std::vector<std::vector<std::byte>> saved;  // by column, then by what is made

  // The end of a run that was stopped before it began, and so is bound to nothing. False: it was not.
  [[nodiscard]] bool end_unbegun(const Model& described, std::span<const run::PlaneMemory> planes);
  void end_unbegun(const Model& described, std::int64_t live);
  void begin();
  [[nodiscard]] Next advance();
  [[nodiscard]] bool part_way() const;
  void answer(bool stop);

private:
  [[nodiscard]] std::optional<RunStatus> asked_to_stop() const;
  // Stores nothing.
  void end_before_the_first_step(RunStatus asked, std::int64_t live, std::int64_t samples, std::int64_t most);
  bool stop_if_asked();  // ends the run where the control says so
  // All of these that are given a slice end when it is over, at least a little further; false: something is
  // left.
  [[nodiscard]] bool find_tiles(const run::Slice& slice);  // that have something to do
  // Tiled and fused.
  void begin_pass();
  [[nodiscard]] bool pass(const run::Slice& slice);
  void end_pass();
  Progress advance_all(std::int64_t target, const run::Slice& slice);
  void level();
  void heed_control(bool heed);
  [[nodiscard]] PassCost cost() const;
  void probe(std::int64_t most);
  void measure_branches(std::int64_t most);
  [[nodiscard]] std::int64_t next_target();
  void take(const Progress& progress);
  // Stepwise.
  [[nodiscard]] Next stepwise(const run::Slice& slice);
  [[nodiscard]] Next take_steps(const run::Slice& slice);
  [[nodiscard]] bool steps_are_small() const;
  void begin_step();
  [[nodiscard]] bool run_kernel(const BoundKernel& kernel, const run::Slice& slice);
  void run_own(const BoundKernel& kernel, const run::Slice& slice);
  void run_shared(const BoundKernel& kernel, const run::Slice& slice);
  void take_step();
  void keep_reductions(const BoundKernel& kernel);
  [[nodiscard]] bool end_step(const run::Slice& slice);
  void save();
  void restore() const;
  // Both.
  [[nodiscard]] Next after_steps();
  [[nodiscard]] bool call_due();
  void retire();  // tiles without live samples
  void complete_records();
  void settle();
  void end(RunStatus status);
  void report_groups();
  void report_ranges();
};

// A run on a GPU, which is the stepper's to run.
struct Simulation::OnDevice {
  graph::Touches touches;
  std::unique_ptr<DeviceStepper> stepper;
  Status failure = {};
};

// Adds the dispatch groups of a run that has not looked at them.
void report_unopened_groups(const Model& described, RunReport& report);

}  // namespace eagle::step
