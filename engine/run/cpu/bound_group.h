// BoundGroup: launches that run block of samples by block of samples, with every address resolved.
//
// A thread takes a block through all functions of the group before it looks at the next: what one function
// stores the next finds in the cache, and nobody waits for anybody. Threads have the same samples in every
// launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/run/control.h"
#include "engine/run/cpu/bound_launch.h"
#include "engine/run/cpu/chunk.h"
#include "engine/run/cpu/kernel_facts.h"
#include "engine/run/cpu/piece.h"
#include "engine/run/cpu/share.h"
#include "engine/run/cpu/shared_launch.h"
#include "engine/run/kernel_counts.h"
#include "engine/run/node_times.h"

namespace eagle::run {

// Opening a region costs a few microseconds, and waking threads that have gone to sleep some more: what this
// much work takes on one.
constexpr double usual_inline_work = 400'000;

// How groups run, where there is a choice.
struct GroupRules {
  double inline_work = usual_inline_work;  // of a run that stays on the calling thread (kernel::work_of)
  std::int64_t streamed_from = 0;          // bytes that a run stores: from so many on past the caches
};

class BoundGroup {
public:
  // Functions in order, each over as many samples. A group whose samples make something together has one, and
  // `shared`.
  struct Function {
    BoundLaunch launch;
    KernelFacts::Cost cost;  // of the kernel that it is the code of
  };
  BoundGroup(std::vector<Function> functions, std::optional<SharedLaunch> shared, const GroupRules& rules);

  // Runs samples until they are done or the slice is over. With a team where the work is worth it; in place
  // inside of a parallel region. For one caller at a time.
  KernelCounts run(const Piece& piece, Progress& progress) const;
  // On the calling thread, which has a kernel::FloatEnvironment, with the one space of `piece`; how far it
  // came is said by `place`. Samples that make something together run in one piece. Whether all is done.
  bool run_in_place(const Piece& piece, Place& place) const;

  [[nodiscard]] const BoundLaunch& function(std::size_t index) const { return functions_[index]; }
  [[nodiscard]] BoundLaunch& function(std::size_t index) { return functions_[index]; }
  [[nodiscard]] const std::optional<SharedLaunch>& shared() const { return shared_; }

  // What the functions took in measured pieces.
  [[nodiscard]] std::vector<TickSum>& times() const { return times_; }

  [[nodiscard]] std::int64_t samples() const { return samples_; }
  [[nodiscard]] std::int64_t block() const { return block_; }  // samples
  [[nodiscard]] int threads(int team) const;                   // that it wants of a team
  // As kernel::work_of, of all samples; infinite where a loop decides.
  [[nodiscard]] double work() const;
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }  // that one run loads and stores, tables aside

private:
  // Of a team's shares the first one learns; `measures`: it notes what functions take.
  void run_share(Range share, bool learns, bool measures, const Piece& piece, Place& place) const;
  bool run_block(Range block, bool long_block, bool measures, const Piece& piece, Place& place) const;

  std::vector<BoundLaunch> functions_;
  std::optional<SharedLaunch> shared_;
  std::int64_t samples_ = 0;
  std::int64_t block_ = 0;
  std::int64_t bytes_ = 0;
  double work_ = 0;
  double inline_work_ = 0;
  bool loops_ = false;
  bool streams_ = false;
  mutable Chunk chunk_{share_grain};
  mutable std::vector<TickSum> times_;  // by function
};

}  // namespace eagle::run
