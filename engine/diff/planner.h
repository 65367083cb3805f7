// Planner: how plan_reverse works, for the files that hold its parts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/diff/activity.h"
#include "engine/diff/emit.h"
#include "engine/diff/names.h"
#include "engine/diff/needs.h"
#include "engine/diff/program.h"
#include "engine/diff/record.h"
#include "engine/diff/reverse.h"

namespace eagle::diff {

class Planner {
public:
  Planner(const Program& program, const Record& record, const ReverseOptions& options, Reverse& out);

  Status plan();

private:
  // The trips that a list of steps is taken through, one after another; their kept values are rows of stacks.
  struct Trips {
    std::int64_t count = 1;
    std::optional<View> index;  // of the trip; where there is more than one
  };
  // A value that a step's reverse looks at.
  struct Kept {
    View view;     // of the forward graph
    View stack;    // one row a trip
    View current;  // where the reverse finds it
  };
  // One number that gradients of Params add up in.
  struct ParamSum {
    std::vector<ParamPlace> params;
    View cell;
  };

  // ---- where bytes of the forward graph are
  View within(const View& view,
              std::int64_t region) const;  // the arena's bytes from `region` on are the block's
  View shadow(const View& view);           // what runs again stores there
  View bar(const View& view);              // the adjoint of what is there
  [[nodiscard]] bool has_bar(const View& view) const;
  // What runs again reads, and what the reverse of a step does.
  View again_view(const Step& step, const View& view, bool written);
  View value(const Step& step, const View& view);

  // ---- running forwards once more (planner_again.cpp)
  void begin_again();
  void reserve_kept(std::span<const Step> steps, const Trips& trips);
  void sweep(std::span<const Step> steps, Stages& into, const Trips& trips, const std::vector<bool>* again);
  void run_again(const Step& step, Stages& into);
  void run_again(const Step& step, const graph::KernelLaunch& launch, Stages& into);
  void run_again(const Step& step, const graph::HostNode& host, Stages& into);
  void run_again(const Step& step, const graph::Conditional& conditional, Stages& into);
  void restore(const Step& conditional, Stages& into);
  Emitter::Cells guard_again(const Step& step, const graph::Conditional& conditional);
  void link_params(const Step& step, const kernel::Kernel& launched, const std::string& label,
                   const std::vector<std::optional<std::uint32_t>>& arguments);

  // ---- going backwards (planner_reverse.cpp, planner_loops.cpp)
  Status reverse(std::span<const Step> steps, Stages& into, const Trips& trips, bool outermost);
  Status reverse(const Step& step, Stages& into);
  Status reverse(const Step& step, const graph::KernelLaunch& launch, Stages& into);
  Status reverse(const Step& step, const graph::HostNode& host, Stages& into);
  Status reverse(const Step& step, const graph::Reduce& reduce, Stages& into);
  Status reverse(const Step& step, const graph::Copy& copy, Stages& into);
  Status reverse(const Step& step, const graph::Conditional& conditional, Stages& into);
  Status reverse_loop(const Step& step, const graph::Conditional& loop, Stages& into);
  Status reverse_in_segments(const Step& step, const graph::Conditional& loop, const LoopPlan& plan,
                             Stages& into);
  StatusOr<LoopPlan> plan_loop(const Step& step, const graph::Conditional& loop) const;
  // The number of the first sample that has the largest or smallest number, of each of `rows` rows of `x`,
  // which lie one behind the other; `x` is given as it is reduced.
  View first_of(const Step& step, const View& x, std::int64_t rows, std::int64_t samples, kernel::ReduceOp op,
                Stages& into);
  // The same for each argument of a launch that is a maximum or minimum somebody asks about.
  std::map<std::uint32_t, View> winners_of(const Step& step, const graph::KernelLaunch& launch, Stages& into);
  void clear_bars(const Step& step, Stages& into);
  void clear_outputs(const Step& step, const graph::KernelLaunch& launch, Stages& into);
  void add_param(const Step& step, std::uint32_t argument, const View& sum, Stages& into);
  // Adds what `from` holds to what `into_view` is an adjoint of; both real, of one type and shape.
  Status add(const View& from, const View& into_view, std::string_view label, Stages& into);
  Status add_overlapping(const View& from, const View& into_view, std::string_view label, Stages& into);
  View cell(std::string_view label, Stages& cleared_in);

  const Program& program_;
  const Record& record_;
  const ReverseOptions& options_;
  Reverse& out_;
  std::uint32_t record_plane_ = 0;
  std::optional<Emitter> emit_;
  Stages* head_ = nullptr;  // stages before all others
  Activity activity_;
  Needs needs_;
  std::vector<Wanted> seeds_;
  std::vector<Wanted> wanted_;
  std::vector<bool> has_reals_;  // by block: somebody sees reals in it
  std::map<std::size_t, std::int64_t> shadows_;
  std::map<std::size_t, std::int64_t> bars_;
  std::vector<std::vector<Kept>> kept_;  // by Step::number
  std::vector<ParamSum> sums_;
  std::map<std::size_t, View> captured_;  // gradients of values in the middle, by index into wanted_
};

std::string labelled(std::string_view what, const Step& step);

}  // namespace eagle::diff
