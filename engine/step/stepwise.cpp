// Steps of which each kernel runs over all samples before the next one begins, with the client's part between
// them.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "engine/run/cpu/share.h"
#include "engine/run/cpu/team.h"
#include "engine/step/simulation_state.h"

namespace eagle::step {

Simulation::Next Simulation::State::stepwise(const run::Slice& slice) {
  // Between two steps there may be the client's part, for which nobody is to be kept.
  if (!host_steps.empty() || steps_are_small()) return take_steps(slice);
  Next next = Next::again;
  run::hold_team(team, [&] { next = take_steps(slice); });
  return next;
}

// One thread is enough for a kernel over all samples.
bool Simulation::State::steps_are_small() const {
  return at_most(model.samples, 1, inline_sample_steps / 16);
}

Simulation::Next Simulation::State::take_steps(const run::Slice& slice) {
  while (true) {
    if (!in_step) {
      if (stop_if_asked()) return Next::done;
      begin_step();
    }
    while (!step_taken) {
      const bool host_is_next = next_host < host_steps.size() &&
                                host_steps[next_host].before == next_kernel &&
                                host_steps[next_host].every == 1;
      if (host_is_next) return Next::host_call;
      if (next_kernel == model.kernels.size()) {
        take_step();
        break;
      }
      if (!run_kernel(model.kernels[next_kernel], slice)) {
        restore();
        end(asked_to_stop().value_or(RunStatus::cancelled));
        return Next::done;
      }
      if (!kernel_progress.left) ++next_kernel;
      if (slice.over()) return Next::again;
    }
    if (!end_step(slice)) return Next::again;
    const Next next = after_steps();
    // The client's part makes a step long enough to be a piece of its own.
    if (next != Next::again || !host_steps.empty() || slice.over()) return next;
  }
}

void Simulation::State::begin_step() {
  in_step = true;
  step_taken = false;
  before = steps;
  next_kernel = 0;
  next_host = 0;
  step_progress = {};
  step_nodes.clear();
  for (Tile& tile : tiles) tile.moved = false;
  if (model.long_loops) save();
}

// The kernel, or a piece of it. False: a cancel reached into it, and the step is not whole.
bool Simulation::State::run_kernel(const BoundKernel& kernel, const run::Slice& slice) {
  if (!kernel_progress.left) kernel_outcome = {};
  if (kernel.shared) {
    run_shared(kernel, slice);
  } else {
    run_own(kernel, slice);
  }
  const bool cut = kernel_outcome.counts.cut_short > 0;
  if (kernel_progress.left && !cut) return true;
  kernel_progress = {};
  Progress progress;
  progress.finished = kernel_outcome.finished;
  progress.counts = kernel_outcome.counts;
  step_progress += progress;
  return !cut;
}

// Samples that make nothing together.
void Simulation::State::run_own(const BoundKernel& kernel, const run::Slice& slice) {
  const bool inline_here = tiles.size() == 1 || steps_are_small();
  const int shares = inline_here ? 1 : team;
  const auto count = static_cast<std::int64_t>(tiles.size());
  if (!std::exchange(kernel_progress.left, false)) std::fill(places.begin(), places.end(), run::Place());
  std::mutex adding;
  run::run_shares(shares, [&](int share) {
    run::Place& place = places[static_cast<std::size_t>(share)];
    const run::Range mine = run::even_share(count, share, shares);
    run::BoundLaunch::Outcome total;
    while (mine.begin + place.done < mine.end) {
      Tile& tile = tiles[static_cast<std::size_t>(mine.begin + place.done)];
      run::BoundLaunch::Part part{.begin = tile.begin, .end = tile.end, .first_step = steps};
      if (kernel.long_loops) part.control = stepping.loops;
      const run::BoundLaunch::Outcome outcome = kernel.launch.run(part);
      tile.moved |= outcome.steps > 0;
      tile.live = std::max<std::int64_t>(tile.live - outcome.finished, 0);
      total += outcome;
      ++place.done;
      if (slice.over()) break;
    }
    const std::lock_guard lock(adding);
    kernel_outcome += total;
    kernel_progress.left |= mine.begin + place.done < mine.end;
  });
}

// Those that do.
void Simulation::State::run_shared(const BoundKernel& kernel, const run::Slice& slice) {
  run::Piece piece{team, places, spaces, kernel.long_loops ? stepping.loops : nullptr, slice};
  piece.spaces = piece.spaces.first(steps_are_small() ? 1 : spaces.size());
  kernel_outcome += kernel.shared->step(kernel.launch, piece, steps, kernel_progress);
  if (kernel_progress.left) return;
  for (Tile& tile : tiles) {
    tile.moved |= kernel_outcome.steps > 0 && tile.live > 0;
    if (kernel_outcome.finished > 0) {
      const std::byte* masks = model.masks();
      tile.live = std::count(masks + tile.begin, masks + tile.end, std::byte{0});
    }
  }
  if (model.is_shard && kernel_outcome.counts.cut_short == 0) keep_reductions(kernel);
}

// The nodes that the samples of a shard gave, which are those of the last whole step once the run has ended.
void Simulation::State::keep_reductions(const BoundKernel& kernel) {
  for (std::size_t r = 0; r < kernel.shared->reductions().size(); ++r) {
    const std::span<const run::Partial::Node> nodes = spaces[0].partials[r].nodes();
    step_nodes.emplace_back(kernel.first_reduction + r, std::vector(nodes.begin(), nodes.end()));
  }
}

// All samples have taken it.
void Simulation::State::take_step() {
  step_taken = true;
  take(step_progress);
  for (auto& [reduction, nodes] : step_nodes) result.report.reductions[reduction].nodes = std::move(nodes);
  next_host = 0;
  next_record = 0;
  bool moved = false;
  std::int64_t live = 0;
  const std::byte* masks = model.masks();
  for (Tile& tile : tiles) {
    moved |= tile.moved;
    // The client's part may write the mask, and who shares the plane may, too.
    if (masks != nullptr && !host_steps.empty()) {
      tile.live = std::count(masks + tile.begin, masks + tile.end, std::byte{0});
    } else if (!tile.moved) {
      tile.live = 0;
    }
    live += tile.live;
    tile.steps = steps + 1;
  }
  ++steps;
  if (moved) result.report.steps = steps;
  result.report.fused_steps = 1;
  ++result.report.launches;
  run::count(counters->launches);
  if (masks != nullptr && !host_steps.empty()) result.report.finished = live_at_start - live;
}

bool Simulation::State::end_step(const run::Slice& slice) {
  for (; recorder && next_record < tiles.size(); ++next_record) {
    const std::int64_t rows = recorder->rows_after(steps);
    Tile& tile = tiles[next_record];
    if (tile.rows == rows) continue;
    recorder->record(tile.begin, tile.end, tile.rows, rows);
    tile.rows = rows;
    if (slice.over()) return false;
  }
  in_step = false;
  retire();
  return true;
}

namespace {

// Rows of `bytes` bytes, between memory where they lie `stride` apart and memory where they follow each
// other.
void save_rows(const std::byte* data, std::int64_t stride, int rows, std::size_t bytes,
               std::vector<std::byte>& into) {
  into.resize(bytes * static_cast<std::size_t>(rows));
  for (int row = 0; row < rows; ++row)
    std::memcpy(into.data() + bytes * static_cast<std::size_t>(row), data + row * stride, bytes);
}
void restore_rows(std::byte* data, std::int64_t stride, int rows, std::size_t bytes,
                  const std::vector<std::byte>& from) {
  for (int row = 0; row < rows; ++row)
    std::memcpy(data + row * stride, from.data() + bytes * static_cast<std::size_t>(row), bytes);
}

}  // namespace

// What a cancel inside a long loop must be able to undo: all that the kernels write.
void Simulation::State::save() {
  saved.resize(model.columns.size() + model.made.size());
  std::size_t next = 0;
  for (const ColumnMemory& column : model.columns) {
    std::vector<std::byte>& into = saved[next++];
    if (!column.written) continue;
    save_rows(column.data, column.component_stride, column.components,
              static_cast<std::size_t>(model.samples * column.item_bytes), into);
  }
  for (const MadeMemory& made : model.made)
    save_rows(made.data, made.component_stride, made.components, made.bytes, saved[next++]);
}

void Simulation::State::restore() const {
  if (saved.empty()) return;
  std::size_t next = 0;
  for (const ColumnMemory& column : model.columns) {
    const std::vector<std::byte>& from = saved[next++];
    if (!column.written) continue;
    restore_rows(column.data, column.component_stride, column.components,
                 static_cast<std::size_t>(model.samples * column.item_bytes), from);
  }
  for (const MadeMemory& made : model.made)
    restore_rows(made.data, made.component_stride, made.components, made.bytes, saved[next++]);
}

}  // namespace eagle::step
