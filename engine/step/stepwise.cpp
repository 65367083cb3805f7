// Steps of which each kernel runs over all samples before the next one begins, with the client's part between
// them.
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "engine/kernel/float_environment.h"
#include "engine/step/simulation_state.h"

namespace eagle::step {

Simulation::Next Simulation::State::stepwise() {
  const Clock::time_point begun = Clock::now();
  while (true) {
    if (!in_step) {
      if (stop_if_asked()) return Next::done;
      begin_step();
    }
    for (;;) {
      const bool host_is_next = next_host < host_steps.size() &&
                                host_steps[next_host].before == next_kernel &&
                                host_steps[next_host].every == 1;
      if (host_is_next) return Next::host_call;
      if (next_kernel == model.kernels.size()) break;
      const BoundKernel& kernel = model.kernels[next_kernel++];
      if (!(kernel.shared ? run_shared(kernel) : run_kernel(kernel))) {
        restore();
        end(asked_to_stop().value_or(RunStatus::cancelled));
        return Next::done;
      }
    }
    end_step();
    const Next next = after_steps();
    // The client's part makes a step long enough to be a pass of its own.
    if (next != Next::again || !host_steps.empty()) return next;
    if (std::chrono::duration<double>(Clock::now() - begun).count() > pass_s) return next;
  }
}

void Simulation::State::begin_step() {
  in_step = true;
  before = steps;
  next_kernel = 0;
  next_host = 0;
  step_progress = {};
  step_nodes.clear();
  for (Tile& tile : tiles) tile.moved = false;
  if (model.long_loops) save();
}

// False: a cancel reached into it, and the step is not whole.
bool Simulation::State::run_kernel(const BoundKernel& kernel) {
  const bool inline_here =
      tiles.size() == 1 || omp_in_parallel() || at_most(model.samples, 1, inline_sample_steps / 16);
  Progress all;
  std::mutex adding;
#pragma omp parallel num_threads(team) if (!inline_here)
  {
    const kernel::FloatEnvironment environment;
    Progress mine;
#pragma omp for schedule(static) nowait
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      Tile& tile = tiles[i];
      run::BoundLaunch::Part part{.begin = tile.begin, .end = tile.end, .first_step = steps};
      if (kernel.long_loops) part.control = stepping.loops;
      const run::BoundLaunch::Outcome outcome = kernel.launch.run(part);
      tile.moved |= outcome.steps > 0;
      tile.live = std::max<std::int64_t>(tile.live - outcome.finished, 0);
      mine.finished += outcome.finished;
      mine.counts += outcome.counts;
    }
    const std::lock_guard lock(adding);
    all += mine;
  }
  step_progress += all;
  return all.counts.cut_short == 0;
}

// The same for a kernel whose samples make something together.
bool Simulation::State::run_shared(const BoundKernel& kernel) {
  const bool inline_here = omp_in_parallel() || at_most(model.samples, 1, inline_sample_steps / 16);
  const std::span threads = std::span(spaces).first(inline_here ? 1 : spaces.size());
  const run::BoundLaunch::Outcome outcome =
      kernel.shared->step(kernel.launch, threads, steps, kernel.long_loops ? stepping.loops : nullptr);
  for (Tile& tile : tiles) {
    tile.moved |= outcome.steps > 0 && tile.live > 0;
    if (outcome.finished > 0) {
      const std::byte* masks = model.masks();
      tile.live = std::count(masks + tile.begin, masks + tile.end, std::byte{0});
    }
  }
  if (model.is_shard && outcome.counts.cut_short == 0) keep_reductions(kernel);
  Progress progress;
  progress.finished = outcome.finished;
  progress.counts = outcome.counts;
  step_progress += progress;
  return outcome.counts.cut_short == 0;
}

// The nodes that the samples of a shard gave, which are those of the last whole step once the run has ended.
void Simulation::State::keep_reductions(const BoundKernel& kernel) {
  for (std::size_t r = 0; r < kernel.shared->reductions().size(); ++r) {
    const std::span<const run::Partial::Node> nodes = spaces[0].partials[r].nodes();
    step_nodes.emplace_back(kernel.first_reduction + r, std::vector(nodes.begin(), nodes.end()));
  }
}

void Simulation::State::end_step() {
  in_step = false;
  take(step_progress);
  for (auto& [reduction, nodes] : step_nodes) result.report.reductions[reduction].nodes = std::move(nodes);
  next_host = 0;
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
  if (recorder) {
    const std::int64_t rows = recorder->rows_after(steps);
    for (Tile& tile : tiles) {
      recorder->record(tile.begin, tile.end, tile.rows, rows);
      tile.rows = rows;
    }
  }
  retire();
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
