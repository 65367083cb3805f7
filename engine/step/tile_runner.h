// TileRunner: takes one tile after another through steps of the whole model. One a thread.
//
// A tile is stepped in windows. Between two of them the runner looks whether somebody wants the run to stop,
// records, packs the live samples of the tile together where that pays, and orders them by the branches that
// they take where a dispatch group is split. None of this changes a bit: a sample meets no other one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/run/control.h"
#include "engine/run/cpu/slice.h"
#include "engine/step/bound_model.h"
#include "engine/step/pace.h"
#include "engine/step/packed_tile.h"
#include "engine/step/recorder.h"
#include "engine/step/tile.h"

namespace eagle::step {

// What a thread did.
struct Progress {
  std::int64_t finished = 0;  // samples
  std::int64_t steps = 0;     // of tiles, added up
  std::int64_t last_step = 0;
  std::int64_t compactions = 0;
  bool stopped = false;    // before the target, because somebody wanted it
  double processor_s = 0;  // of the thread that took the longest
  run::KernelCounts counts;

  Progress& operator+=(const Progress& other);
};

// What the runners of one run share; each tile's part of it belongs to the runner that has the tile.
struct Stepping {
  const BoundModel* model = nullptr;
  const run::Control* control = nullptr;  // may be null
  const run::Control* loops = nullptr;    // what loops of kernels look at; may be null
  const Recorder* recorder = nullptr;     // may be null
  bool may_pack = true;
  bool looks = false;  // at what samples select, every `look_steps` steps
  std::int64_t samples_per_tile = 0;
  std::vector<BranchCosts> costs;  // by group; empty `branches`: not known
  // By group and sample: the branch that it took when it was last looked at, or takes_none.
  std::vector<std::vector<std::int16_t>>* branches = nullptr;
};

// What the pieces of a pass before this one took.
struct Spent {
  double clock_s = 0;
  double processor_s = 0;
};

class TileRunner {
public:
  using Clock = std::chrono::steady_clock;

  // For a piece of a pass, which begins now and may last as long as the slice (see patience_s).
  TileRunner(const Stepping& stepping, const run::Slice& slice, Spent before);

  // Takes the tile's live samples on to step `target` of the run, or as far as they go; but no further than
  // one window once the slice is over. The thread has a kernel::FloatEnvironment.
  void advance(Tile& tile, std::int64_t target);
  // Steps the tile for a while, to find what the branches of a group cost. The steps count.
  BranchCosts measure(Tile& tile, std::size_t group, double& measured_gain);

  [[nodiscard]] Progress progress() const;

private:
  [[nodiscard]] const BoundModel& model() const { return *stepping_.model; }
  [[nodiscard]] std::int64_t window(const Tile& tile, std::int64_t target) const;
  [[nodiscard]] bool asked_to_stop(Clock::time_point now) const;

  struct Ran {
    std::int64_t steps = 0;
    std::int64_t finished = 0;
    bool cut_short = false;
  };
  // The samples [begin, end) of the tile, or of its packed copy.
  Ran run(std::int64_t begin, std::int64_t end, std::int64_t first_step, std::int64_t steps);
  Ran run_each_step(std::int64_t begin, std::int64_t end, std::int64_t first_step, std::int64_t steps);
  run::BoundLaunch::Part part(std::size_t kernel, std::int64_t begin, std::int64_t end);
  void save(std::int64_t begin, std::int64_t end);
  void restore(std::int64_t begin, std::int64_t end) const;
  Ran step(Tile& tile, std::int64_t steps);

  void record(Tile& tile);
  void begin_packed(const Tile& tile, std::int64_t target);
  void thin_out(Tile& tile, const Ran& ran, double took_s, std::int64_t target);
  [[nodiscard]] bool may_thin_out(const Tile& tile) const;
  [[nodiscard]] Thinning thinning(const Tile& tile, std::int64_t target) const;
  void bring_together(const Tile& tile);
  [[nodiscard]] std::int64_t live_blocks(const Tile& tile) const;
  [[nodiscard]] bool few_are_gone(const Tile& tile) const;  // less than an eighth, which is not packed

  void look(Tile& tile);
  void select(const Tile& tile);
  void decide(Tile& tile, std::size_t group);
  void order(const Tile& tile);
  [[nodiscard]] bool is_split(const Tile& tile, std::size_t group) const;

  void make_packed();
  void pack(const Tile& tile);
  void unpack();
  [[nodiscard]] bool packed() const { return packed_ && !packed_->empty(); }

  const Stepping& stepping_;
  const run::Slice& slice_;
  const Spent before_;
  const Clock::time_point start_;
  const double processor_start_s_;  // of its thread
  Progress progress_;
  double step_s_ = 0;  // of the tile in hand, or the one before
  std::int64_t window_ = first_window;

  std::optional<PackedTile> packed_;
  std::vector<std::vector<std::byte*>> packed_planes_;  // by kernel and argument
  std::vector<std::vector<std::int64_t>> packed_strides_;
  std::vector<std::vector<std::int64_t>> selected_;  // by group; by sample of the tile or of its packed copy
  std::vector<std::int64_t> natural_;                // selectors by place in the tile
  std::vector<std::int64_t> keys_;
  std::vector<std::byte> saved_;
  // Measured: seconds for each sample of a tile, to pack it and to drop those of it that have finished.
  double pack_s_ = 8e-9;
  double drop_s_ = 2e-9;
};

}  // namespace eagle::step
