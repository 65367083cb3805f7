#include "engine/run/cpu/bound_group.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/base/clock.h"
#include "engine/kernel/float_environment.h"
#include "engine/kernel/work.h"
#include "engine/run/cpu/share.h"

namespace eagle::run {
namespace {

using Clock = std::chrono::steady_clock;

#pragma omp declare reduction(+ : KernelCounts : omp_out += omp_in)

// What a function loads and stores of a block takes about so much of the first-level cache: the next
// function finds it there. Measured with chains of 16: see docs/design/executor.md.
constexpr std::int64_t block_bytes = 16 << 10;
constexpr std::int64_t least_block = 256;
constexpr std::int64_t most_block = 4096;

// Bytes of a sample that a kernel loads and stores, tables aside.
std::int64_t sample_bytes(const kernel::Kernel& kernel) {
  const std::vector<kernel::Access> accesses = kernel::accesses(kernel);
  std::int64_t bytes = 0;
  for (std::size_t a = 0; a < accesses.size(); ++a) {
    const kernel::Argument& argument = kernel.arguments[a];
    if (!kernel::is_per_sample(argument.role)) continue;
    const int ways = (accesses[a].read ? 1 : 0) + (accesses[a].written ? 1 : 0);
    bytes += ways * argument.type.components() * std::int64_t{kernel::bytes_of(argument.type.scalar)};
  }
  return bytes;
}

}  // namespace

BoundGroup::BoundGroup(std::vector<Function> functions, std::optional<SharedLaunch> shared,
                       double inline_work)
    : shared_(std::move(shared)), inline_work_(inline_work) {
  std::int64_t widest = 1;
  double work = 0;
  for (Function& function : functions) {
    const std::int64_t bytes = sample_bytes(*function.kernel);
    widest = std::max(widest, bytes);
    bytes_ += bytes;
    work += kernel::work_of(*function.kernel);
    functions_.push_back(std::move(function.launch));
  }
  samples_ = functions_.front().samples();
  bytes_ *= samples_;
  work_ = work * static_cast<double>(samples_);
  const std::int64_t fits = block_bytes / widest / share_grain * share_grain;
  block_ = functions_.size() == 1 ? samples_ : std::clamp(fits, least_block, most_block);
}

int BoundGroup::threads(int team) const {
  if (work_ <= inline_work_) return 1;
  return static_cast<int>(std::min<std::int64_t>(team, (samples_ + share_grain - 1) / share_grain));
}

KernelCounts BoundGroup::run_share(std::int64_t begin, std::int64_t end, const Control* control) const {
  KernelCounts counts;
  if (functions_.size() == 1) {
    counts += functions_.front().run({.begin = begin, .end = end, .control = control}).counts;
    return counts;
  }
  for (std::int64_t first = begin; first < end; first += block_) {
    if (control != nullptr && first > begin && (control->cancelled() || control->expired()))
      ++counts.cut_short;
    for (const BoundLaunch& function : functions_) {
      // What is left of a loop that was cancelled is nothing to go on with.
      if (counts.cut_short > 0) return counts;
      counts +=
          function.run({.begin = first, .end = std::min(first + block_, end), .control = control}).counts;
    }
  }
  return counts;
}

KernelCounts BoundGroup::run_in_place(std::span<ThreadSpace> space, const Control* control) const {
  if (shared_) return shared_->step(functions_.front(), space, 0, control).counts;
  if (samples_ == 0) return {};
  return run_share(0, samples_, control);
}

KernelCounts BoundGroup::run(int team, std::span<ThreadSpace> spaces, const Control* control,
                             Progress& progress) const {
  const int wanted = threads(team);
  const bool alone = wanted <= 1 || omp_in_parallel();
  if (shared_ || samples_ == 0) {
    if (!alone) return shared_->step(functions_.front(), spaces, 0, control).counts;
    const kernel::FloatEnvironment environment;
    return run_in_place(shared_ ? spaces.first(1) : spaces, control);
  }
  // As long as the longest share.
  const std::int64_t share = alone ? samples_ : share_of(samples_, 0, wanted).end;
  const Range batch{progress.done, std::min(progress.done + batches_.next(), share)};
  const bool watch = batches_.watch(share);
  const Clock::time_point began = watch ? Clock::now() : Clock::time_point();
  const KernelCounts counts = run_batch(alone ? 1 : wanted, batch, control);
  if (watch) batches_.took(batch.end - batch.begin, seconds_since(began));
  progress.done = batch.end == share ? 0 : batch.end;
  return counts;
}

// These samples of each of so many shares.
KernelCounts BoundGroup::run_batch(int shares, Range of_shares, const Control* control) const {
  if (shares == 1) {
    const kernel::FloatEnvironment environment;
    return run_share(of_shares.begin, of_shares.end, control);
  }
  KernelCounts counts;
#pragma omp parallel num_threads(shares) reduction(+ : counts)
  {
    const kernel::FloatEnvironment environment;
    // The team may be smaller than asked for: then some thread has several shares.
    for (int owner = omp_get_thread_num(); owner < shares; owner += omp_get_num_threads()) {
      const Range all = share_of(samples_, owner, shares);
      const Range share{all.begin + of_shares.begin, std::min(all.begin + of_shares.end, all.end)};
      if (!share.empty()) counts += run_share(share.begin, share.end, control);
    }
  }
  return counts;
}

}  // namespace eagle::run
