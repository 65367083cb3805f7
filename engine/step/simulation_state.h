// What a Simulation is made of. For the engine, which fills it, and for simulation.cpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/run/control.h"
#include "engine/run/counters.h"
#include "engine/run/cpu/bound_launch.h"
#include "engine/step/pace.h"
#include "engine/step/simulation.h"

namespace eagle::step {

// Consecutive samples that one thread takes through a pass. Only tiles with live samples are kept.
struct Tile {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t live = 0;   // samples whose mask is not set
  std::int64_t steps = 0;  // that its live samples have taken
};

struct Simulation::State {
  explicit State(run::BoundLaunch bound) : launch(std::move(bound)) {}

  // Filled by the engine.
  run::BoundLaunch launch;
  std::size_t mask = 0;               // index of the kernel's mask among its arguments
  std::int64_t bytes_per_sample = 0;  // that a pass moves between memory and cache
  std::int64_t max_steps = 0;
  int team = 1;
  std::shared_ptr<const run::Control> control;
  std::shared_ptr<run::Counters> counters;
  RunResult result;

  // Kept by the simulation.
  bool started = false;
  bool ended = false;
  std::chrono::steady_clock::time_point start;
  std::int64_t samples_per_tile = 0;
  std::vector<Tile> tiles;
  std::int64_t steps = 0;  // that every live sample has taken
  double tile_step_s = 0;  // measured: one step of one tile, for the whole team

  void begin();          // finds the tiles that have something to do
  bool stop_if_asked();  // ends the run where the control says so
  void pass();           // takes every live sample on by some steps

private:
  [[nodiscard]] PassCost cost() const;
  void probe();
  [[nodiscard]] std::int64_t next_target();
  void settle();
  void end(RunStatus status);
};

}  // namespace eagle::step
