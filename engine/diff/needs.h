// What a reverse pass needs of the forward one: derivatives of kernels, the values that these look at, and
// what has to run again so that values which were overwritten are there once more.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "engine/base/status.h"
#include "engine/diff/activity.h"
#include "engine/diff/names.h"
#include "engine/diff/program.h"
#include "engine/kernel/diff/derivative.h"

namespace eagle::diff {

// How one launch is reversed.
struct LaunchReverse {
  std::shared_ptr<const kernel::diff::Derivative> derivative;  // null: nothing that it reads is asked about
  // What the samples give to its maxima and minima; null: a seed depends on none of these.
  std::shared_ptr<const kernel::diff::Derivative> terms;
  std::vector<bool> asked;  // by argument of the kernel: what it commits, where a seed depends on it
  std::vector<bool> wrt;    // by argument of the kernel
  std::vector<bool>
      direct;  // its adjoint plane is added to in place: nothing else of the launch has its bytes
};

struct Needs {
  std::vector<LaunchReverse> launches;  // by Step::number
  // By Step::number: what the reverse of the step looks at and what does not hold after the launch, as the
  // step found it. Of a conditional: whole blocks, as bytes, from which its body can run again.
  std::vector<std::vector<plane::View>> kept;
  std::vector<bool> again;         // by index into Program::steps(): it runs once more
  std::set<std::size_t> restored;  // blocks that what runs again finds as they were before the launch
};

enum class Unknown { refused, taken_for_all };  // kernels without a derivative

// `params`: real Params that are asked about.
StatusOr<Needs> find_needs(const Program& program, const Activity& activity,
                           const std::vector<ParamPlace>& params, Unknown unknown);

// What a step reads when it runs again: of a host node its cursor alone, since its results are in the record.
void for_each_reread(const Step& step, const std::function<void(const plane::View&)>& visit);

// The bytes of a block, as one view of the plane that they lie in.
plane::View bytes_of(const Block& block);

}  // namespace eagle::diff
