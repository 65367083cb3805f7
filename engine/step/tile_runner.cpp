#include "engine/step/tile_runner.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "engine/step/pace.h"

namespace eagle::step {
namespace {

double seconds(TileRunner::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Of the calling thread.
double processor_s() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The address of sample 0 in a plane of which sample `begin` lies at `data`. May lie outside of any object,
// so it is computed as a number; compiled code adds the offset of `begin` again.
std::byte* before(std::int64_t* data, std::int64_t begin) {
  const auto bytes = static_cast<std::uintptr_t>(begin) * sizeof(std::int64_t);
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(data) -
                                      bytes);  // NOLINT(*-int-to-ptr)
}

// Costs from what blocks of one branch took. What happens outside of the branches has its share by the number
// of values that it computes; a branch that was not met is judged by its number, too.
BranchCosts shared_out(const BoundGroup& group, const std::vector<double>& branch_s,
                       const std::vector<double>& block_steps, double order_s) {
  BranchCosts costs{0, std::vector<double>(group.branches), order_s};
  bool measured = false;
  for (std::size_t b = 0; b < group.branches; ++b) {
    if (block_steps[b] <= 0) continue;
    const double outside = static_cast<double>(group.kernel_weight);
    const double share = outside / (outside + static_cast<double>(group.weights[b]));
    const double common = branch_s[b] / block_steps[b] * share;
    costs.common = measured ? std::min(costs.common, common) : common;
    measured = true;
  }
  if (!measured) return {};
  double seconds_met = 0, weight_met = 0;
  for (std::size_t b = 0; b < group.branches; ++b) {
    if (block_steps[b] <= 0) continue;
    costs.branches[b] = branch_s[b] / block_steps[b] - costs.common;
    seconds_met += costs.branches[b];
    weight_met += static_cast<double>(group.weights[b]);
  }
  for (std::size_t b = 0; b < group.branches; ++b) {
    if (block_steps[b] <= 0 && weight_met > 0)
      costs.branches[b] = static_cast<double>(group.weights[b]) * seconds_met / weight_met;
  }
  return costs;
}

}  // namespace

TileRunner::TileRunner(const Stepping& stepping, const run::Slice& slice, Spent before)
    : stepping_(stepping),
      slice_(slice),
      before_(before),
      start_(Clock::now()),
      processor_start_s_(processor_s()) {}

Progress TileRunner::progress() const {
  Progress progress = progress_;
  progress.processor_s = processor_s() - processor_start_s_;
  return progress;
}

Progress& Progress::operator+=(const Progress& other) {
  finished += other.finished;
  steps += other.steps;
  last_step = std::max(last_step, other.last_step);
  compactions += other.compactions;
  stopped |= other.stopped;
  processor_s = std::max(processor_s, other.processor_s);
  counts += other.counts;
  return *this;
}

// ---- one tile

void TileRunner::advance(Tile& tile, std::int64_t target) {
  window_ = first_window;
  begin_packed(tile, target);
  const Visit before = tile.visit;
  tile.visit = {.block_step_s = before.block_step_s};
  while (tile.live > 0 && tile.steps < target && !progress_.stopped) {
    look(tile);
    const std::int64_t wanted = window(tile, target);
    const Clock::time_point start = Clock::now();
    const Ran ran = step(tile, wanted);
    const Clock::time_point now = Clock::now();
    const double took_s = seconds(now - start);
    if (ran.steps > 0) step_s_ = took_s / static_cast<double>(ran.steps);
    tile.visit.steps += ran.steps;
    tile.visit.finished += ran.finished;
    record(tile);
    if (ran.cut_short || asked_to_stop(now)) progress_.stopped = true;
    if (slice_.time_is_over()) break;
    thin_out(tile, ran, took_s, target);
  }
  if (tile.visit.steps == 0) tile.visit = before;
  unpack();
}

// Windows are short where samples finish, so that they can be packed soon, and grow where they do not.
std::int64_t TileRunner::window(const Tile& tile, std::int64_t target) const {
  std::int64_t steps = std::min(target - tile.steps, longest_window(step_s_, tile.end - tile.begin));
  if (stepping_.may_pack) steps = std::min(steps, window_);
  if (stepping_.recorder != nullptr) {
    const std::int64_t every = stepping_.recorder->every();
    steps = std::min(steps, every - tile.steps % every);
  }
  if (stepping_.looks) steps = std::min(steps, look_steps - tile.steps % look_steps);
  return slice_.least() ? std::min(steps, least_window) : steps;
}

bool TileRunner::asked_to_stop(Clock::time_point now) const {
  const run::Control* control = stepping_.control;
  if (control == nullptr || (!control->cancelled() && !control->expired())) return false;
  return before_.processor_s + processor_s() - processor_start_s_ >= patience_s ||
         before_.clock_s + seconds(now - start_) >= longest_patience_s;
}

TileRunner::Ran TileRunner::step(Tile& tile, std::int64_t steps) {
  const Ran ran =
      packed() ? run(0, packed_->padded(), tile.steps, steps) : run(tile.begin, tile.end, tile.steps, steps);
  tile.steps += ran.steps;
  // Who shares the plane may set masks meanwhile, so the count alone is not relied on: a tile that stopped
  // early has no live sample.
  const bool ended = ran.steps < steps && !ran.cut_short;
  tile.live = ended ? 0 : std::max<std::int64_t>(tile.live - ran.finished, 0);
  progress_.finished += ran.finished;
  progress_.steps += ran.steps;
  if (ran.steps > 0) progress_.last_step = std::max(progress_.last_step, tile.steps);
  return ran;
}

void TileRunner::record(Tile& tile) {
  if (stepping_.recorder == nullptr) return;
  const std::int64_t rows = stepping_.recorder->rows_after(tile.steps);
  if (rows == tile.rows || tile.steps % stepping_.recorder->every() != 0) return;
  if (packed()) packed_->store();
  stepping_.recorder->record(tile.begin, tile.end, tile.rows, rows);
  tile.rows = rows;
}

// ---- the kernels

run::BoundLaunch::Part TileRunner::part(std::size_t kernel, std::int64_t begin, std::int64_t end) {
  run::BoundLaunch::Part part{.begin = begin, .end = end};
  if (packed()) {
    part.planes = packed_planes_[kernel].data();
    part.component_strides = packed_strides_[kernel].data();
    part.sample_numbers = packed_->batch_numbers();
  }
  return part;
}

TileRunner::Ran TileRunner::run(std::int64_t begin, std::int64_t end, std::int64_t first_step,
                                std::int64_t steps) {
  if (model().kernels.size() > 1) return run_each_step(begin, end, first_step, steps);
  run::BoundLaunch::Part part = this->part(0, begin, end);
  part.max_steps = steps;
  part.first_step = first_step;
  part.control = stepping_.loops;
  const run::BoundLaunch::Outcome outcome = model().kernels[0].launch.run(part);
  progress_.counts += outcome.counts;
  return {outcome.steps, outcome.finished, outcome.counts.cut_short > 0};
}

// All kernels, step by step. A cancel reaches into a step only where it may last; what there was of it is
// undone.
TileRunner::Ran TileRunner::run_each_step(std::int64_t begin, std::int64_t end, std::int64_t first_step,
                                          std::int64_t steps) {
  Ran ran;
  while (ran.steps < steps && !ran.cut_short) {
    if (model().long_loops) save(begin, end);
    std::int64_t finished = 0;
    bool moved = false;
    run::KernelCounts counts;
    for (std::size_t k = 0; k < model().kernels.size() && !ran.cut_short; ++k) {
      run::BoundLaunch::Part part = this->part(k, begin, end);
      part.first_step = first_step + ran.steps;
      if (model().kernels[k].long_loops) part.control = stepping_.loops;
      const run::BoundLaunch::Outcome outcome = model().kernels[k].launch.run(part);
      counts += outcome.counts;
      finished += outcome.finished;
      moved |= outcome.steps > 0;
      ran.cut_short = outcome.counts.cut_short > 0;
    }
    if (ran.cut_short) {
      restore(begin, end);
      progress_.counts.cut_short += counts.cut_short;  // what it met is undone with it
      break;
    }
    progress_.counts += counts;
    if (!moved) break;
    ran.finished += finished;
    ++ran.steps;
  }
  return ran;
}

// Copies what the kernels may change of these samples.
void TileRunner::save(std::int64_t begin, std::int64_t end) {
  saved_.clear();
  for (std::size_t c = 0; c < model().columns.size(); ++c) {
    const ColumnMemory& column = model().columns[c];
    if (!column.written) continue;
    const std::byte* data = packed() ? packed_->column(c) : column.data;
    const std::int64_t stride = packed() ? packed_->component_stride(c) : column.component_stride;
    for (int component = 0; component < column.components; ++component) {
      const std::byte* from = data + component * stride + begin * column.item_bytes;
      saved_.insert(saved_.end(), from, from + (end - begin) * column.item_bytes);
    }
  }
}

void TileRunner::restore(std::int64_t begin, std::int64_t end) const {
  const std::byte* from = saved_.data();
  for (std::size_t c = 0; c < model().columns.size(); ++c) {
    const ColumnMemory& column = model().columns[c];
    if (!column.written) continue;
    std::byte* data = packed() ? packed_->column(c) : column.data;
    const std::int64_t stride = packed() ? packed_->component_stride(c) : column.component_stride;
    const auto bytes = static_cast<std::size_t>((end - begin) * column.item_bytes);
    for (int component = 0; component < column.components; ++component) {
      std::memcpy(data + component * stride + begin * column.item_bytes, from, bytes);
      from += bytes;
    }
  }
}

// ---- live samples, packed together

std::int64_t TileRunner::live_blocks(const Tile& tile) const {
  if (packed()) return packed_->live_blocks();
  return count_live_blocks(model().masks() + tile.begin, tile.end - tile.begin, model().lanes);
}

bool TileRunner::may_thin_out(const Tile& tile) const {
  return stepping_.may_pack && model().mask != none && tile.live > 0;
}

// What the last visit packed lies at home again: where it pays, this one begins with the live samples
// together. Visits of heavy models are short, so that later looks would come too late.
void TileRunner::begin_packed(const Tile& tile, std::int64_t target) {
  if (!may_thin_out(tile) || tile.visit.steps == 0 || few_are_gone(tile)) return;
  Thinning thinning = this->thinning(tile, target);
  thinning.finished = tile.visit.finished;
  thinning.window = tile.visit.steps;
  thinning.block_step_s = tile.visit.block_step_s;
  if (packing_pays(thinning)) bring_together(tile);
}

void TileRunner::thin_out(Tile& tile, const Ran& ran, double took_s, std::int64_t target) {
  if (!may_thin_out(tile) || ran.steps == 0 || progress_.stopped) return;
  if (ran.finished == 0) {
    window_ = std::min<std::int64_t>(window_ * 2, std::int64_t{1} << 40);
    if (few_are_gone(tile)) return;
  }
  Thinning thinning = this->thinning(tile, target);
  thinning.finished = ran.finished;
  thinning.window = ran.steps;
  thinning.block_step_s = took_s / static_cast<double>(ran.steps * thinning.blocks);
  tile.visit.block_step_s = thinning.block_step_s;
  if (!packing_pays(thinning)) {
    if (ran.finished > 0) window_ = thinning_window(thinning);
    return;
  }
  if (ran.finished > 0) window_ = first_window;
  bring_together(tile);
}

bool TileRunner::few_are_gone(const Tile& tile) const {
  const std::int64_t places = packed() ? packed_->size() : tile.end - tile.begin;
  return tile.live * 8 > places * 7;
}

// What the tile's places show; what its time showed is for the caller to add.
Thinning TileRunner::thinning(const Tile& tile, std::int64_t target) const {
  Thinning thinning;
  thinning.blocks = std::max<std::int64_t>(live_blocks(tile), 1);
  thinning.packed = (tile.live + model().lanes - 1) / model().lanes;
  thinning.live = tile.live;
  thinning.left = target - tile.steps;
  thinning.move_s =
      packed() ? drop_s_ * static_cast<double>(packed_->size()) : pack_s_ * static_cast<double>(tile.live);
  return thinning;
}

void TileRunner::bring_together(const Tile& tile) {
  make_packed();
  double& each_s = packed() ? drop_s_ : pack_s_;
  const auto samples = static_cast<double>(packed() ? packed_->size() : tile.live);
  const Clock::time_point start = Clock::now();
  if (packed()) {
    packed_->drop_finished();
  } else {
    pack(tile);
  }
  const double measured_s = seconds(Clock::now() - start) / samples;
  each_s = std::min(0.5 * (each_s + measured_s), 2 * each_s);  // one that was interrupted says little
  ++progress_.compactions;
}

void TileRunner::make_packed() {
  if (packed_) return;
  packed_.emplace(model().columns, model().mask, stepping_.samples_per_tile, model().lanes,
                  model().first_number);
  for (const BoundKernel& kernel : model().kernels) {
    const auto planes = kernel.launch.planes();
    const auto strides = kernel.launch.component_strides();
    packed_planes_.emplace_back(planes.begin(), planes.end());
    packed_strides_.emplace_back(strides.begin(), strides.end());
    for (std::size_t a = 0; a < kernel.columns.size(); ++a) {
      if (kernel.columns[a] == none) continue;
      packed_planes_.back()[a] = packed_->column(kernel.columns[a]);
      packed_strides_.back()[a] = packed_->component_stride(kernel.columns[a]);
    }
  }
}

void TileRunner::pack(const Tile& tile) {
  make_packed();
  packed_->load(tile.begin, tile.end);
}

void TileRunner::unpack() {
  if (!packed()) return;
  packed_->store();
  packed_->clear();
}

// ---- dispatch groups

bool TileRunner::is_split(const Tile& tile, std::size_t group) const {
  const BoundGroup& known = model().groups[group];
  if (!known.selectable) return false;
  if (known.policy == kernel::DispatchPolicy::automatic) return tile.groups[group].rule.split();
  return known.policy == kernel::DispatchPolicy::segmented;
}

// At every sixteenth step where it may change something, and once where it is only counted.
void TileRunner::look(Tile& tile) {
  if (tile.groups.empty() || tile.steps % look_steps != 0 || tile.steps == tile.looked_at) return;
  if (!stepping_.looks && tile.looked_at >= 0) return;
  tile.looked_at = tile.steps;
  select(tile);
  bool split = false;
  for (std::size_t g = 0; g < model().groups.size(); ++g) {
    decide(tile, g);
    split |= is_split(tile, g);
  }
  if (!split || !stepping_.may_pack) return;
  if (!packed()) {
    pack(tile);
    select(tile);
  } else if (model().mask != none && packed_->size() > tile.live) {
    packed_->drop_finished();
    select(tile);
  }
  if (packed()) order(tile);
}

// The selectors of every sample, in the order of the tile or of its packed copy.
void TileRunner::select(const Tile& tile) {
  selected_.resize(model().groups.size());
  const std::int64_t begin = packed() ? 0 : tile.begin;
  const std::int64_t end = packed() ? packed_->size() : tile.end;
  for (auto& selected : selected_) selected.assign(static_cast<std::size_t>(end - begin), takes_none);
  for (const BoundKernel& kernel : model().kernels) {
    if (!kernel.selectors) continue;
    const auto home = kernel.selectors->planes();
    const auto home_strides = kernel.selectors->component_strides();
    std::vector<std::byte*> planes(home.begin(), home.end());
    std::vector<std::int64_t> strides(home_strides.begin(), home_strides.end());
    for (std::size_t a = 0; packed() && a < kernel.selectors_columns.size(); ++a) {
      if (kernel.selectors_columns[a] == none) continue;
      planes[a] = packed_->column(kernel.selectors_columns[a]);
      strides[a] = packed_->component_stride(kernel.selectors_columns[a]);
    }
    for (std::size_t o = 0; o < kernel.selected_groups.size(); ++o)
      planes[kernel.first_output + o] = before(selected_[kernel.selected_groups[o]].data(), begin);
    kernel.selectors->run({.begin = begin,
                           .end = end,
                           .first_step = tile.steps,
                           .planes = planes.data(),
                           .component_strides = strides.data(),
                           .sample_numbers = packed() ? packed_->batch_numbers() : nullptr});
  }
}

// Notes what the live samples of the tile select, and predicts.
void TileRunner::decide(Tile& tile, std::size_t g) {
  const BoundGroup& group = model().groups[g];
  if (!group.selectable) return;
  natural_.assign(static_cast<std::size_t>(tile.end - tile.begin), not_there);
  std::vector<std::int64_t> samples(group.branches);
  std::int64_t live = 0;
  const std::byte* masks =
      packed() ? (model().mask == none ? nullptr : packed_->column(model().mask)) : model().masks();
  const std::int64_t first = packed() ? 0 : tile.begin;
  for (std::size_t i = 0; i < selected_[g].size(); ++i) {
    const std::int64_t at = first + static_cast<std::int64_t>(i);
    if (masks != nullptr && masks[at] != std::byte{0}) continue;
    const std::int64_t number = packed() ? packed_->numbers()[i] : at;
    const std::int64_t selected = selected_[g][i];
    ++live;
    natural_[static_cast<std::size_t>(number - tile.begin)] = selected;
    (*stepping_.branches)[g][static_cast<std::size_t>(number)] = static_cast<std::int16_t>(selected);
    if (selected >= 0) ++samples[static_cast<std::size_t>(selected)];
  }
  // Gaps are left out: packing would close them whatever the form.
  std::erase(natural_, not_there);
  const BranchCosts& costs = stepping_.costs[g];
  if (group.policy != kernel::DispatchPolicy::automatic || costs.branches.empty()) return;
  std::int64_t without = live;
  for (const std::int64_t count : samples) without -= count;
  GroupLook& look = tile.groups[g];
  look.prediction = predict(costs, count_blocks(natural_, model().lanes, group.branches),
                            count_ordered(samples, without, model().lanes), live);
  look.rule.look(look.prediction.gain());
}

// Groups that are split together make one key, as far as it stays small.
void TileRunner::order(const Tile& tile) {
  constexpr std::int64_t most_keys = 4096;
  keys_.assign(static_cast<std::size_t>(packed_->size()), 0);
  std::int64_t keys = 1;
  for (std::size_t g = 0; g < model().groups.size(); ++g) {
    const auto more = static_cast<std::int64_t>(model().groups[g].branches) + 1;
    if (!is_split(tile, g) || keys * more > most_keys) continue;
    for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i] = keys_[i] * more + selected_[g][i] + 1;
    keys *= more;
  }
  packed_->order_by(keys_);
}

// Sixteen steps as the samples lie, then sixteen in order of the group's branches, of which every block that
// takes one branch alone is timed.
BranchCosts TileRunner::measure(Tile& tile, std::size_t g, double& measured_gain) {
  const BoundGroup& group = model().groups[g];
  const auto timed = [&](std::int64_t begin, std::int64_t end, std::int64_t steps, Ran& ran) {
    const Clock::time_point start = Clock::now();
    ran = run(begin, end, tile.steps, steps);
    return seconds(Clock::now() - start);
  };
  look(tile);
  unpack();
  const Clock::time_point fused_start = Clock::now();
  const Ran fused = step(tile, look_steps);
  const double fused_s = seconds(Clock::now() - fused_start);
  if (tile.live == 0 || fused.steps < look_steps) return {};

  // Twice, because the first time finds nothing in the cache.
  double order_s = 0;
  for (const bool first : {true, false}) {
    const Clock::time_point order_start = Clock::now();
    pack(tile);
    select(tile);
    keys_.assign(selected_[g].begin(), selected_[g].end());
    for (std::int64_t& key : keys_) ++key;
    packed_->order_by(keys_);
    const double took_s = seconds(Clock::now() - order_start);
    order_s = first ? took_s : std::min(order_s, took_s);
  }
  select(tile);
  const double order_one_s = order_s / static_cast<double>(packed_->size());

  // Runs of blocks that take one branch, and what lies between them.
  std::vector<double> branch_s(group.branches), branch_blocks(group.branches);
  const std::vector<std::int64_t> selected = selected_[g];
  const std::int64_t lanes = model().lanes;
  const auto branch_of = [&](std::int64_t block) -> std::int64_t {
    const std::int64_t first = block * lanes;
    const std::int64_t last = std::min(first + lanes, packed_->size());
    const std::int64_t branch = selected[static_cast<std::size_t>(first)];
    return branch == selected[static_cast<std::size_t>(last - 1)] ? branch : not_there;
  };
  const std::int64_t blocks = (packed_->size() + lanes - 1) / lanes;
  double split_s = order_s;
  Ran all;
  for (std::int64_t block = 0; block < blocks;) {
    std::int64_t next = block + 1;
    while (next < blocks && branch_of(next) == branch_of(block)) ++next;
    Ran ran;
    const std::int64_t end = std::min(next * lanes, packed_->padded());
    const double took_s = timed(block * lanes, end, look_steps, ran);
    split_s += took_s;
    all.finished += ran.finished;
    all.steps = std::max(all.steps, ran.steps);
    all.cut_short |= ran.cut_short;
    if (const std::int64_t branch = branch_of(block); branch >= 0 && ran.steps > 0) {
      branch_s[static_cast<std::size_t>(branch)] +=
          took_s * static_cast<double>(look_steps) / static_cast<double>(ran.steps);
      branch_blocks[static_cast<std::size_t>(branch)] += static_cast<double>((next - block) * look_steps);
    }
    block = next;
  }
  tile.steps += all.steps;
  tile.live =
      all.steps < look_steps && !all.cut_short ? 0 : std::max<std::int64_t>(tile.live - all.finished, 0);
  progress_.finished += all.finished;
  progress_.steps += all.steps;
  progress_.stopped |= all.cut_short;
  progress_.last_step = std::max(progress_.last_step, tile.steps);
  unpack();
  measured_gain = split_s > 0 ? fused_s / split_s : 1.0;
  return shared_out(group, branch_s, branch_blocks, order_one_s);
}

}  // namespace eagle::step
