#include "engine/step/simulation.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "engine/base/clock.h"
#include "engine/kernel/float_environment.h"
#include "engine/run/cpu/team.h"
#include "engine/step/pace.h"
#include "engine/step/simulation_state.h"

namespace eagle::step {
namespace {

// The rate at which a pass is taken to move state through memory. Meant to be low: a pass then comes out
// a little shorter than planned on a faster machine, and not much longer on a slower one.
constexpr double memory_bytes_per_s = 5e9;
// A measurement of one tile is believed when it took this long.
constexpr double probe_s = 10e-6;

// Meant to be in the right proportion: what one value of one block and moving one sample cost on common
// machines.
BranchCosts costs_by_size(const BoundGroup& group, std::size_t columns) {
  constexpr double value_s = 1e-9;
  BranchCosts costs{
      value_s * static_cast<double>(group.kernel_weight), {}, 2e-9 * static_cast<double>(columns)};
  for (const std::size_t weight : group.weights)
    costs.branches.push_back(value_s * static_cast<double>(weight));
  return costs;
}

// `masks`: null where there are none.
std::int64_t live_of(const std::byte* masks, std::int64_t samples) {
  return masks == nullptr ? samples : std::count(masks, masks + samples, std::byte{0});
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

std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::fused:
      return "fused";
    case Mode::tiled:
      return "tiled";
    case Mode::stepwise:
      return "stepwise";
  }
  return "unknown";
}

// ---- the life of a run

void Simulation::State::begin() {
  started = true;
  start = Clock::now();
  const std::int64_t samples = model.samples;
  samples_per_tile = tile_size(samples, team, model.lanes, model.bytes_per_sample);
  const bool groups = mode != Mode::stepwise && !model.groups.empty();
  branches.assign(groups ? model.groups.size() : 0,
                  std::vector<std::int16_t>(static_cast<std::size_t>(samples), takes_none));
  stepping.model = &model;
  if (control && model.long_loops) loop_watch.emplace(control);
  heed_control(true);
  stepping.recorder = recorder ? &*recorder : nullptr;
  stepping.samples_per_tile = samples_per_tile;
  stepping.branches = &branches;
  stepping.costs.resize(model.groups.size());
  // Records taken often would have every packed tile written back as often.
  stepping.may_pack = packs && (!recorder || recorder->every() >= first_window);
  stepping.looks = groups && stepping.may_pack &&
                   std::any_of(model.groups.begin(), model.groups.end(), [](const BoundGroup& group) {
                     return group.selectable && (group.policy == kernel::DispatchPolicy::automatic ||
                                                 group.policy == kernel::DispatchPolicy::segmented);
                   });
  tiles.reserve(static_cast<std::size_t>((samples + samples_per_tile - 1) / samples_per_tile));
  places.resize(static_cast<std::size_t>(team));
}

bool Simulation::State::find_tiles(const run::Slice& slice) {
  const std::byte* masks = model.masks();
  while (found < model.samples) {
    Tile tile;
    tile.begin = found;
    tile.end = std::min(found + samples_per_tile, model.samples);
    tile.live = tile.end - tile.begin;
    if (masks != nullptr) tile.live = std::count(masks + tile.begin, masks + tile.end, std::byte{0});
    live_at_start += tile.live;
    tile.groups.resize(branches.size());
    if (recorder) {
      tile.rows = recorder->rows_after(0);
      recorder->record(tile.begin, tile.end, 0, tile.rows);
    }
    found = tile.end;
    tiles.push_back(std::move(tile));
    if (found < model.samples && slice.over()) return false;
  }
  retire();
  settle();
  return true;
}

bool Simulation::State::end_unbegun(const Model& described, std::span<const run::PlaneMemory> planes) {
  if (!asked_to_stop()) return false;
  const std::byte* masks = nullptr;
  if (described.mask != none && described.samples > 0) {
    const plane::View& view = described.columns[described.mask].view;
    masks = planes[view.plane].data;
    if (masks == nullptr) return false;  // binding refuses it
    masks += view.offset;
  }
  end_unbegun(described, live_of(masks, described.samples));
  return true;
}

void Simulation::State::end_unbegun(const Model& described, std::int64_t live) {
  end_before_the_first_step(asked_to_stop().value_or(RunStatus::cancelled), live, described.samples,
                            described.max_steps);
  report_unopened_groups(described, result.report);
}

// As they are compiled: nobody looked at what they take.
void report_unopened_groups(const Model& described, RunReport& report) {
  for (const StepKernel& part : described.kernels) {
    for (const StepGroup& group : part.groups) {
      const bool open = group.policy == kernel::DispatchPolicy::automatic;
      report.dispatch.push_back({group.name, open ? kernel::DispatchPolicy::switch_ : group.policy,
                                 std::vector<std::int64_t>(group.branches), 1, 0});
    }
  }
}

void Simulation::State::end_before_the_first_step(RunStatus asked, std::int64_t live, std::int64_t samples,
                                                  std::int64_t most) {
  started = ended = true;
  result.status = live == 0 ? RunStatus::finished : most == 0 ? RunStatus::max_steps : asked;
  if (live > 0) result.report.ranges = {{samples, 0}};
  run::count(counters->runs);
}

Simulation::Next Simulation::State::advance() {
  if (!started) {
    // Whoever cancelled it may have done so while others still use its planes: nothing is recorded there.
    if (const auto asked = asked_to_stop()) {
      end_before_the_first_step(*asked, live_of(model.masks(), model.samples), model.samples, max_steps);
      report_groups();
      return Next::done;
    }
    begin();
  }
  if (ended) return Next::done;
  // Whoever wants it to stop waits for what is in hand, so that gives way no more.
  const run::Slice slice = asked_to_stop() ? run::Slice() : run::Slice(piece_s);
  if (!has_tiles) {
    has_tiles = find_tiles(slice);
    if (!has_tiles) return Next::again;
    if (ended) return Next::done;
  }
  if (in_calls) return after_steps();
  if (mode == Mode::stepwise) return stepwise(slice);
  if (!target) {
    if (stop_if_asked()) return Next::done;
    begin_pass();
  }
  if (!pass(slice)) return Next::again;
  if (ended) return Next::done;
  const Next next = after_steps();
  return next == Next::again && stop_if_asked() ? Next::done : next;
}

bool Simulation::State::part_way() const { return started && !ended && (!has_tiles || target || in_step); }

// What comes between whole steps: the client's look at the run, or its end.
Simulation::Next Simulation::State::after_steps() {
  in_calls = call_due();
  if (in_calls) {
    complete_records();
    return Next::host_call;
  }
  settle();
  return ended ? Next::done : Next::again;
}

// Whether a host step that does not come in every step is due after the steps since `before`. Where every
// sample has finished there is nothing more to look at.
bool Simulation::State::call_due() {
  for (; !tiles.empty() && next_host < host_steps.size(); ++next_host) {
    const std::int64_t every = host_steps[next_host].every;
    if (every > 1 && steps / every > before / every) return true;
  }
  next_host = 0;
  return false;
}

void Simulation::State::answer(bool stop) {
  stop_wanted |= stop;
  ++next_host;
}

std::optional<RunStatus> Simulation::State::asked_to_stop() const {
  if (control && control->cancelled()) return RunStatus::cancelled;
  if (control && control->expired()) return RunStatus::deadline;
  return std::nullopt;
}

bool Simulation::State::stop_if_asked() {
  if (const auto status = asked_to_stop()) end(*status);
  return ended;
}

void Simulation::State::retire() {
  const bool keep = recorder.has_value() || !branches.empty() || !host_steps.empty();
  for (Tile& tile : tiles) {
    if (keep && tile.live == 0) out.push_back(tile);
  }
  std::erase_if(tiles, [](const Tile& tile) { return tile.live == 0; });
}

// Ends the run where nothing is left to do.
void Simulation::State::settle() {
  if (tiles.empty() || stop_wanted) {
    end(RunStatus::finished);
  } else if (steps == max_steps) {
    end(RunStatus::max_steps);
  }
}

// Finished samples stay as they are, and so do their rows.
void Simulation::State::complete_records() {
  if (!recorder) return;
  std::int64_t rows = recorder->rows_after(result.report.steps);
  for (const Tile& tile : tiles) rows = std::min(rows, tile.rows);
  for (Tile& tile : out) {
    recorder->record(tile.begin, tile.end, tile.rows, rows);
    tile.rows = std::max(tile.rows, rows);
  }
  result.report.records = rows;
}

void Simulation::State::end(RunStatus status) {
  ended = true;
  complete_records();
  report_ranges();
  report_groups();
  result.status = status;
  loop_watch.reset();
  result.report.wall_s = seconds_since(start);
  run::count(counters->runs);
}

// Tiles without unfinished samples belong to the range before them.
void Simulation::State::report_ranges() {
  std::vector<StepRange>& ranges = result.report.ranges;
  for (const Tile& tile : tiles) {
    if (ranges.empty() || ranges.back().steps != tile.steps) {
      if (!ranges.empty()) ranges.back().end = tile.begin;
      ranges.push_back({0, tile.steps});
    }
  }
  if (!ranges.empty()) ranges.back().end = model.samples;
}

void Simulation::State::report_groups() {
  for (std::size_t g = 0; g < model.groups.size(); ++g) {
    const BoundGroup& group = model.groups[g];
    GroupReport report{group.name, group.policy, std::vector<std::int64_t>(group.branches), 1, 0};
    if (g < branches.size()) {
      for (const std::int16_t branch : branches[g]) {
        if (branch >= 0) ++report.counts[static_cast<std::size_t>(branch)];
      }
    }
    Prediction all;
    std::int64_t split = 0, fused = 0;
    for (const auto* some : {&tiles, &out}) {
      for (const Tile& tile : *some) {
        if (tile.groups.empty() || tile.looked_at < 0) continue;
        all.fused_s += tile.groups[g].prediction.fused_s;
        all.split_s += tile.groups[g].prediction.split_s;
        (tile.groups[g].rule.split() ? split : fused) += tile.end - tile.begin;
      }
    }
    if (group.policy == kernel::DispatchPolicy::automatic) {
      report.policy = split > fused ? kernel::DispatchPolicy::segmented : kernel::DispatchPolicy::switch_;
      report.gain = all.gain();
      report.measured_gain = g < measured_gains.size() ? measured_gains[g] : 0;
    }
    result.report.dispatch.push_back(std::move(report));
  }
}

// ---- passes of many steps, tile by tile

PassCost Simulation::State::cost() const {
  const double tiles_left = static_cast<double>(tiles.size());
  const double bytes = static_cast<double>(samples_per_tile) * static_cast<double>(model.bytes_per_sample);
  return {tiles_left * bytes / memory_bytes_per_s, tiles_left * tile_step_s};
}

void Simulation::State::take(const Progress& progress) {
  result.report.finished += progress.finished;
  result.report.counts += progress.counts;
  result.report.steps = std::max(result.report.steps, progress.last_step);
  result.report.compactions += progress.compactions;
}

// Steps the first tile on its own, for twice as long each time, until it says how long a step takes once
// its state is in cache. The steps count: the pass that follows brings the others up to it, so they stay
// within what that pass will be.
void Simulation::State::probe(std::int64_t most) {
  const kernel::FloatEnvironment environment;
  const auto at_once = static_cast<double>(std::min(tiles.size(), static_cast<std::size_t>(team)));
  Tile& tile = tiles.front();
  double took_s = 0;
  for (std::int64_t wanted = 1; tile.live > 0 && took_s < probe_s; wanted *= 2) {
    const std::int64_t step = tile.steps + wanted;
    if (step > std::min(most, pass_steps(cost(), max_steps))) break;
    const Clock::time_point begun = Clock::now();
    const run::Slice whole;
    TileRunner runner(stepping, whole, {});
    runner.advance(tile, step);
    took_s = seconds_since(begun);
    const Progress progress = runner.progress();
    tile_step_s = took_s / static_cast<double>(std::max<std::int64_t>(progress.steps, 1)) / at_once;
    take(progress);
    if (progress.stopped) break;
  }
}

// What the branches of open groups cost, tried on the first tile, whose steps count. Where there are not the
// steps for that, they are judged by the number of values that they compute.
void Simulation::State::measure_branches(std::int64_t most) {
  measured_gains.assign(model.groups.size(), 0);
  for (std::size_t g = 0; g < model.groups.size(); ++g) {
    if (model.groups[g].policy != kernel::DispatchPolicy::automatic || !model.groups[g].selectable) continue;
    if (known_costs) {
      if (auto costs = known_costs(model.groups[g].name)) {
        stepping.costs[g] = *std::move(costs);
        continue;
      }
    }
    Tile& tile = tiles.front();
    if (!recorder && tile.live > 0 && most - tile.steps >= 4 * look_steps) {
      const kernel::FloatEnvironment environment;
      const run::Slice whole;
      TileRunner runner(stepping, whole, {});
      stepping.costs[g] = runner.measure(tile, g, measured_gains[g]);
      take(runner.progress());
    }
    if (stepping.costs[g].branches.empty())
      stepping.costs[g] = costs_by_size(model.groups[g], model.columns.size());
  }
}

// The step of the run to which the next pass takes every live sample.
std::int64_t Simulation::State::next_target() {
  std::int64_t most = max_steps;
  for (const HostStep& host : host_steps)
    most = steps + std::min(host.every - steps % host.every, most - steps);
  if (steps_per_pass > 0) most = std::min(most, steps + std::min(steps_per_pass, max_steps - steps));
  if (steps == 0 && stepping.looks) measure_branches(most);
  if (steps_per_pass == 0 && !at_most(model.samples, most - steps, one_pass_sample_steps)) {
    if (tile_step_s == 0) probe(most);
    std::int64_t wanted = pass_steps(cost(), most - steps);
    // Tiles that are ordered are so anew in each pass, which a few steps would not be worth.
    if (stepping.looks) wanted = std::min(std::max(wanted, 4 * look_steps), most - steps);
    most = steps + wanted;
  }
  return std::max(most, tiles.front().steps);
}

// Takes all tiles to a step of the run, as far as they go and the slice lets them.
Progress Simulation::State::advance_all(std::int64_t step, const run::Slice& slice) {
  const bool inline_here = tiles.size() == 1 || at_most(model.samples, step - steps, inline_sample_steps);
  const std::vector<std::size_t> left = std::exchange(behind, {});
  const std::size_t first = next_tile;
  const std::size_t all_tiles = left.size() + tiles.size() - first;
  std::atomic<std::size_t> taken = 0;
  Progress all;
  std::mutex adding;
  run::run_team(inline_here ? 1 : team, [&](int, int) {
    TileRunner runner(stepping, slice, pass_spent);
    std::optional<std::size_t> unfinished;
    do {
      const std::size_t number = taken.fetch_add(1, std::memory_order_relaxed);
      if (number >= all_tiles) break;
      const std::size_t index = number < left.size() ? left[number] : first + number - left.size();
      Tile& tile = tiles[index];
      runner.advance(tile, step);
      if (tile.live > 0 && tile.steps < step) unfinished = index;
    } while (!slice.time_is_over());
    const std::lock_guard lock(adding);
    all += runner.progress();
    if (unfinished) behind.push_back(*unfinished);
  });
  const std::size_t touched = std::min(taken.load(), all_tiles);
  for (std::size_t number = touched; number < left.size(); ++number) behind.push_back(left[number]);
  next_tile = first + touched - std::min(touched, left.size());
  take(all);
  return all;
}

void Simulation::State::begin_pass() {
  before = steps;
  target = next_target();
  next_tile = 0;
  behind.clear();
  pass_progress = {};
  pass_spent = {};
  visit_s = cost().visit_s;
}

bool Simulation::State::pass(const run::Slice& slice) {
  const Clock::time_point begun = Clock::now();
  const Progress piece = advance_all(*target, slice);
  pass_progress += piece;
  pass_spent.clock_s += seconds_since(begun);
  pass_spent.processor_s += piece.processor_s;
  if (!piece.stopped && (next_tile < tiles.size() || !behind.empty())) return false;
  end_pass();
  return true;
}

void Simulation::State::end_pass() {
  if (pass_progress.stopped) level();
  const std::int64_t reached = *std::exchange(target, std::nullopt);
  result.report.fused_steps = std::max(result.report.fused_steps, result.report.steps - steps);
  steps = reached;
  ++result.report.launches;
  run::count(counters->launches);
  retire();
  // Samples are at whole steps, and at one where that was soon done; else the report says which are at which.
  const bool level_now =
      std::all_of(tiles.begin(), tiles.end(), [&](const Tile& t) { return t.steps == reached; });
  if (!level_now) return end(asked_to_stop().value_or(RunStatus::cancelled));
  const double took_s = pass_spent.clock_s;
  if (pass_progress.steps > 0) {
    tile_step_s = std::max(took_s - visit_s, took_s / 2) / static_cast<double>(pass_progress.steps);
  }
}

void Simulation::State::heed_control(bool heed) {
  stepping.control = heed ? control.get() : nullptr;
  stepping.loops = heed && loop_watch ? &loop_watch->control() : stepping.control;
}

// Brings the tiles of a pass that was left to the step of the furthest, where that is soon done. A step that
// a loop of a kernel was left in may take for ever.
void Simulation::State::level() {
  std::int64_t furthest = 0;
  LeftPass left{pass_spent.clock_s, pass_progress.steps, 0};
  for (const Tile& tile : tiles) {
    if (tile.live > 0) furthest = std::max(furthest, tile.steps);
  }
  for (const Tile& tile : tiles) {
    if (tile.live > 0) left.missing += furthest - tile.steps;
  }
  if (pass_progress.counts.cut_short > 0 || !levelling_pays(left)) return;
  heed_control(false);
  next_tile = 0;
  behind.clear();
  advance_all(furthest, {});
  heed_control(true);
}

// ---- for its caller

Simulation::Simulation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Simulation::Simulation(std::unique_ptr<OnDevice> device) : device_(std::move(device)) {}
Simulation::~Simulation() = default;

Simulation::Next Simulation::advance() {
  if (!device_) return state_->advance();
  if (!device_->failure.ok()) return Next::failed;
  const StatusOr<Next> next = device_->stepper->advance();
  if (next.ok()) return *next;
  device_->failure = next.status();
  return Next::failed;
}
bool Simulation::ended() const {
  return device_ ? !device_->failure.ok() || device_->stepper->ended() : state_->ended;
}
bool Simulation::part_way() const { return device_ ? device_->stepper->part_way() : state_->part_way(); }
std::uint32_t Simulation::call() const {
  return device_ ? device_->stepper->call() : state_->host_steps[state_->next_host].call;
}
void Simulation::answer(bool stop) { device_ ? device_->stepper->answer(stop) : state_->answer(stop); }
const RunResult& Simulation::result() const { return device_ ? device_->stepper->result() : state_->result; }
const graph::Touches& Simulation::touches() const { return device_ ? device_->touches : state_->touches; }
const Status& Simulation::failure() const {
  static const Status none_of_the_cpu;
  return device_ ? device_->failure : none_of_the_cpu;
}

}  // namespace eagle::step
