#include "engine/step/simulation.h"

#include <omp.h>

#include <algorithm>
#include <utility>

#include "engine/kernel/float_environment.h"
#include "engine/step/pace.h"
#include "engine/step/simulation_state.h"

namespace eagle::step {
namespace {

using Clock = std::chrono::steady_clock;

// The rate at which a pass is taken to move state through memory. Meant to be low: a pass then comes out
// a little shorter than planned on a faster machine, and not much longer on a slower one.
constexpr double memory_bytes_per_s = 5e9;
// A measurement of one tile is believed when it took this long.
constexpr double probe_s = 10e-6;

#pragma omp declare reduction(+ : run::KernelCounts : omp_out += omp_in)

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Takes a tile on to step `target` of the run. The caller has a kernel::FloatEnvironment.
run::BoundLaunch::Outcome step_to(const run::BoundLaunch& launch, Tile& tile, std::int64_t target,
                                  const run::Control* control) {
  if (tile.live == 0 || tile.steps >= target) return {};
  const std::int64_t wanted = target - tile.steps;
  const run::BoundLaunch::Outcome outcome = launch.run({.begin = tile.begin,
                                                        .end = tile.end,
                                                        .max_steps = wanted,
                                                        .first_step = tile.steps,
                                                        .control = control});
  tile.steps += outcome.steps;
  // Who shares the plane may set masks meanwhile, so the count alone is not relied on: a tile that stopped
  // early has no live sample.
  tile.live = outcome.steps < wanted ? 0 : std::max<std::int64_t>(tile.live - outcome.finished, 0);
  return outcome;
}

}  // namespace

std::string_view name_of(RunStatus status) {
  switch (status) {
    case RunStatus::finished:
      return "finished";
    case RunStatus::max_steps:
      return "max_steps";
    case RunStatus::cancelled:
      return "cancelled";
    case RunStatus::deadline:
      return "deadline";
  }
  return "unknown";
}

void Simulation::State::begin() {
  started = true;
  start = Clock::now();
  const std::int64_t samples = launch.samples();
  samples_per_tile = tile_size(samples, team, launch.code().lanes());
  const std::byte* masks = launch.plane(mask);
  for (std::int64_t first = 0; first < samples; first += samples_per_tile) {
    const std::int64_t last = std::min(first + samples_per_tile, samples);
    const std::int64_t live = std::count(masks + first, masks + last, std::byte{0});
    if (live > 0) tiles.push_back({first, last, live, 0});
  }
  settle();
}

bool Simulation::State::stop_if_asked() {
  if (control && control->cancelled()) {
    end(RunStatus::cancelled);
  } else if (control && control->expired()) {
    end(RunStatus::deadline);
  }
  return ended;
}

// Ends the run where nothing is left to do.
void Simulation::State::settle() {
  if (tiles.empty()) {
    end(RunStatus::finished);
  } else if (steps == max_steps) {
    end(RunStatus::max_steps);
  }
}

void Simulation::State::end(RunStatus status) {
  ended = true;
  result.status = status;
  result.report.wall_s = seconds_since(start);
  run::count(counters->runs);
}

PassCost Simulation::State::cost() const {
  const double tiles_left = static_cast<double>(tiles.size());
  const double tile_bytes = static_cast<double>(samples_per_tile) * static_cast<double>(bytes_per_sample);
  return {tiles_left * tile_bytes / memory_bytes_per_s, tiles_left * tile_step_s};
}

// Steps the first tile on its own, for twice as long each time, until it says how long a step takes once
// its state is in cache. The steps count: the pass that follows brings the others up to it, so they stay
// within what that pass will be.
void Simulation::State::probe() {
  const kernel::FloatEnvironment environment;
  const auto at_once = static_cast<double>(std::min(tiles.size(), static_cast<std::size_t>(team)));
  Tile& tile = tiles.front();
  double took_s = 0;
  for (std::int64_t wanted = 1; tile.live > 0 && took_s < probe_s; wanted *= 2) {
    const std::int64_t target = tile.steps + wanted;
    if (target > pass_steps(cost(), max_steps)) break;
    const Clock::time_point before = Clock::now();
    const run::BoundLaunch::Outcome outcome = step_to(launch, tile, target, control.get());
    took_s = seconds_since(before);
    tile_step_s = took_s / static_cast<double>(std::max<std::int64_t>(outcome.steps, 1)) / at_once;
    result.report.finished += outcome.finished;
    result.report.counts += outcome.counts;
    result.report.steps = std::max(result.report.steps, tile.steps);
  }
}

// The step of the run to which the next pass takes every live sample.
std::int64_t Simulation::State::next_target() {
  if (at_most(launch.samples(), max_steps, one_pass_sample_steps)) return max_steps;
  if (tile_step_s == 0) probe();
  return std::max(steps + pass_steps(cost(), max_steps - steps), tiles.front().steps);
}

void Simulation::State::pass() {
  const std::int64_t target = next_target();
  const Clock::time_point before = Clock::now();
  const double visit = cost().visit_s;
  const bool inline_here = tiles.size() == 1 || omp_in_parallel() ||
                           at_most(launch.samples(), target - steps, inline_sample_steps);
  std::int64_t finished = 0;
  std::int64_t last_step = result.report.steps;
  std::int64_t tile_steps = 0;
  run::KernelCounts counts;
#pragma omp parallel num_threads(team) if (!inline_here)
  {
    const kernel::FloatEnvironment environment;
#pragma omp for schedule(dynamic) reduction(+ : finished, tile_steps, counts) reduction(max : last_step)
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const run::BoundLaunch::Outcome outcome = step_to(launch, tiles[i], target, control.get());
      finished += outcome.finished;
      counts += outcome.counts;
      tile_steps += outcome.steps;
      if (outcome.steps > 0) last_step = std::max(last_step, tiles[i].steps);
    }
  }
  steps = target;
  result.report.finished += finished;
  result.report.steps = last_step;
  result.report.counts += counts;
  ++result.report.launches;
  run::count(counters->launches);
  // A kernel with loops leaves a step that is cancelled, so a tile that stopped early may still be live.
  if (result.report.counts.cut_short > 0) return end(RunStatus::cancelled);
  std::erase_if(tiles, [](const Tile& tile) { return tile.live == 0; });
  if (tile_steps > 0) {
    const double took_s = seconds_since(before);
    tile_step_s = std::max(took_s - visit, took_s / 2) / static_cast<double>(tile_steps);
  }
  settle();
}

Simulation::Simulation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Simulation::~Simulation() = default;

bool Simulation::advance() {
  if (!state_->started) state_->begin();
  if (!state_->ended && !state_->stop_if_asked()) state_->pass();
  return state_->ended;
}

bool Simulation::ended() const { return state_->ended; }
const RunResult& Simulation::result() const { return state_->result; }

}  // namespace eagle::step
